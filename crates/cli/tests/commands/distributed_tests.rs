//! Findings and tests as distributed tests (`--dtest`): which hosts they name as servers.

use crate::common::{build, everett, expect, folder};
use std::fs;
use std::path::Path;

/// Sends a symbolic byte to `receiver` and exits; or waits for one, and then as its argument says.
const PROGRAM: &str = r#"
#include <arpa/inet.h>
#include <assert.h>
#include <everett.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
  unsigned char byte = 0;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7000)};
  if (!strcmp(argv[1], "send")) {
    struct hostent *host = gethostbyname("receiver");
    memcpy(&to.sin_addr, host->h_addr, 4);
    everett_make_symbolic(&byte, 1, "byte");
    sendto(fd, &byte, 1, 0, (void *)&to, sizeof to);
    return 0;
  }
  bind(fd, (void *)&to, sizeof to);
  do
    recv(fd, &byte, 1, 0);
  while (!strcmp(argv[1], "serve") && byte != 200);
  if (!strcmp(argv[1], "fail")) assert(byte != 200);
  return byte == 200;
}
"#;

/// Runs a world of a receiver, a sender and one that only waits, and returns the first finding's
/// hosts with what the test says of each.
fn servers(folder: &Path, receiver: &str) -> Vec<(String, bool)> {
    let host = |name: &str, argument: &str, more: &str| {
        format!("[host.{name}]\nprogram = \"./program\"\nargs = [\"{argument}\"]\n{more}\n")
    };
    let text = [
        host("receiver", receiver, "expect = \"exit 0\""),
        host("sender", "send", ""),
        host("waiter", "wait", ""),
    ];
    fs::write(folder.join("world.toml"), text.concat()).expect("a scenario");
    let mut run = everett(folder);
    run.args(["run", "--dtest", "--out", receiver, "world.toml"]);
    expect(&mut run, 1);
    let file = folder.join(receiver).join("findings/0001/finding.dtest");
    let text = fs::read_to_string(file).expect("a distributed test");
    let nodes = text.lines().filter(|line| line.contains("<node "));
    let mut servers: Vec<(String, bool)> = nodes
        .map(|line| {
            let name = line.split("hostname=\"").nth(1).expect("a name");
            let name = name.split('"').next().expect("its end");
            (name.to_owned(), line.contains("server=\"true\""))
        })
        .collect();
    servers.sort();
    servers
}

#[test]
fn servers_are_the_hosts_that_have_not_ended() {
    let folder = folder("servers_are_the_hosts_that_have_not_ended");
    build(&folder, "program", PROGRAM, &[]);
    // The receiver fails, does not exit, or exits with another status than is expected of it.
    for (receiver, goes_on) in [("fail", false), ("serve", true), ("wait", false)] {
        let expected = [("receiver", goes_on), ("sender", false), ("waiter", true)];
        let expected = expected.map(|(name, server)| (name.to_owned(), server));
        assert_eq!(servers(&folder, receiver), expected, "{receiver}");
    }
}
