//! The declarations of a program about the world in which it becomes a host (`netklee.h`):
//! networks, routers, its own interfaces, and that it is a host. Plain data; the library builds a
//! scenario from it.

use everett_expr::VisitTerms;
use std::net::IpAddr;
use triomphe::Arc;

use crate::config::Boot;
use crate::errno::Errno;
use crate::files::{ChangedFile, FileChange};

/// Maximum length of the name of a network, router or host.
const MAX_NAME_LEN: usize = 63;

/// The declarations of a program.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Networks, in order of declaration.
    pub networks: Vec<String>,
    /// Routers, in order of declaration.
    pub routers: Vec<Machine>,
    /// The host itself. Its name is empty until it is declared.
    pub own: Machine,
    /// It is a server: it runs until it blocks before any client starts.
    pub is_server: bool,
    /// Its position in the start order of servers.
    pub sequence: i32,
    /// Snapshot of the files that it asked to save.
    pub(crate) saved: Option<Arc<Vec<ChangedFile>>>,
    boot: Boot,
    has_begun: bool,
    is_over: bool,
}

/// A host or router.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its interfaces, in order of declaration.
    pub interfaces: Vec<Interface>,
    /// Its routes to addresses outside its own networks.
    pub routes: Vec<Route>,
}

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its number.
    pub number: i32,
    /// The network that it is attached to.
    pub network: String,
    /// Its addresses, primary address first.
    pub addresses: Vec<Subnet>,
}

/// An address with the prefix length of its subnet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// The address.
    pub address: IpAddr,
    /// Prefix length, in bits.
    pub prefix_len: u8,
}

/// A route.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destination.
    pub to: Subnet,
    /// Gateway.
    pub via: IpAddr,
}

impl Subnet {
    /// Creates a subnet after a check of the prefix length. Length 0 selects `usual` if that is not
    /// 0.
    pub fn new(address: IpAddr, length: u64, usual: u8) -> Result<Subnet, Errno> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix_len = match u8::try_from(length) {
            Ok(0) => usual,
            Ok(length) if length <= most => length,
            _ => return Err(Errno::EINVAL),
        };
        Ok(Subnet {
            address,
            prefix_len,
        })
    }

    fn contains(&self, other: IpAddr) -> bool {
        let route = crate::RouteSpec {
            network: self.address,
            prefix_len: self.prefix_len,
            source: self.address,
            gateway: None,
        };
        route.leads_to(other)
    }
}

fn check_name(name: &str) -> Result<(), Errno> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    match name.len() {
        1..=MAX_NAME_LEN if name.bytes().all(is_plain) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

impl Setup {
    /// No declarations.
    pub fn new(boot: Boot) -> Setup {
        Setup {
            boot,
            ..Setup::default()
        }
    }

    /// The declarations, for adding one. Fails once the host is declared.
    pub fn declare(&mut self) -> Result<&mut Setup, Errno> {
        self.has_begun = true;
        if self.is_over {
            return Err(Errno::EBUSY);
        }
        Ok(self)
    }

    /// Whether the program is declaring its world: no failures are injected meanwhile.
    pub fn is_declaring(&self) -> bool {
        self.has_begun && !self.is_over
    }

    /// Whether a host of a built world is still on the path to its start.
    pub fn is_before_start(&self) -> bool {
        matches!(self.boot, Boot::Start(_)) && !self.is_over
    }

    /// Whether the host is declared.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What happens when the path declares itself to be a host.
    pub fn boot(&self) -> &Boot {
        &self.boot
    }

    /// Declares a network.
    pub fn add_network(&mut self, name: String) -> Result<(), Errno> {
        check_name(&name)?;
        if self.networks.contains(&name) {
            return Err(Errno::EEXIST);
        }
        self.networks.push(name);
        Ok(())
    }

    /// Declares a router.
    pub fn add_router(&mut self, name: String) -> Result<(), Errno> {
        check_name(&name)?;
        if self.routers.iter().any(|router| router.name == name) {
            return Err(Errno::EEXIST);
        }
        self.routers.push(Machine {
            name,
            ..Machine::default()
        });
        Ok(())
    }

    /// A router by name, or the host itself.
    fn machine(&mut self, router: Option<&str>) -> Result<&mut Machine, Errno> {
        match router {
            None => Ok(&mut self.own),
            Some(name) => {
                let mut routers = self.routers.iter_mut();
                let found = routers.find(|router| router.name == name);
                found.ok_or(Errno::ENOENT)
            }
        }
    }

    /// Declares an interface on a network.
    pub fn add_interface(
        &mut self,
        number: i32,
        network: String,
        router: Option<&str>,
    ) -> Result<(), Errno> {
        if number < 0 {
            return Err(Errno::EINVAL);
        }
        if !self.networks.contains(&network) {
            return Err(Errno::ENOENT);
        }
        let interfaces = &mut self.machine(router)?.interfaces;
        if interfaces.iter().any(|known| known.number == number) {
            return Err(Errno::EEXIST);
        }
        interfaces.push(Interface {
            number,
            network,
            addresses: Vec::new(),
        });
        Ok(())
    }

    /// Adds an address to an interface.
    pub fn add_address(
        &mut self,
        subnet: Subnet,
        interface: i32,
        is_primary: bool,
        router: Option<&str>,
    ) -> Result<(), Errno> {
        let address = subnet.address;
        if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
            return Err(Errno::EINVAL);
        }
        let mut machines = std::iter::once(&self.own).chain(&self.routers);
        if machines.any(|machine| machine.addresses().any(|known| known.address == address)) {
            return Err(Errno::EADDRINUSE);
        }
        let mut interfaces = self.machine(router)?.interfaces.iter_mut();
        let found = interfaces.find(|known| known.number == interface);
        let addresses = &mut found.ok_or(Errno::ENODEV)?.addresses;
        let at = if is_primary { 0 } else { addresses.len() };
        addresses.insert(at, subnet);
        Ok(())
    }

    /// Adds a route through a gateway.
    pub fn add_route(&mut self, route: Route, router: Option<&str>) -> Result<(), Errno> {
        if route.to.address.is_ipv4() != route.via.is_ipv4() {
            return Err(Errno::EINVAL);
        }
        let machine = self.machine(router)?;
        if !machine.addresses().any(|own| own.contains(route.via)) {
            return Err(Errno::ENETUNREACH);
        }
        if machine.routes.iter().any(|known| known.to == route.to) {
            return Err(Errno::EEXIST);
        }
        machine.routes.push(route);
        Ok(())
    }

    /// Declares the host, which ends the declarations.
    pub fn end(&mut self, name: String, is_server: bool, sequence: i32) -> Result<(), Errno> {
        check_name(&name)?;
        self.own.name = name;
        self.is_server = is_server;
        self.sequence = sequence;
        self.is_over = true;
        Ok(())
    }

    /// Saves a snapshot of files.
    pub fn save(&mut self, files: Vec<ChangedFile>) {
        self.saved = Some(Arc::new(files));
    }

    /// Visits all terms, so that the arena can mark live ones.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        for file in self.saved.iter().flat_map(|files| files.iter()) {
            if let FileChange::File(bytes) = &file.what {
                bytes.for_each_term(visit);
            }
        }
    }
}

impl Machine {
    fn addresses(&self) -> impl Iterator<Item = &Subnet> {
        let interfaces = self.interfaces.iter();
        interfaces.flat_map(|interface| &interface.addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str, length: u64) -> Result<Subnet, Errno> {
        Subnet::new(text.parse().unwrap(), length, 24)
    }

    fn with_network() -> Setup {
        let mut setup = Setup::default();
        setup.add_network("net0".to_owned()).unwrap();
        setup
    }

    #[test]
    fn names_are_plain_and_used_once() {
        let mut setup = with_network();
        for bad in ["", "two words", "a\"b", "a/b", &"n".repeat(64)] {
            let name = bad.to_owned();
            assert_eq!(setup.add_network(name.clone()), Err(Errno::EINVAL), "{bad}");
            assert_eq!(setup.add_router(name.clone()), Err(Errno::EINVAL), "{bad}");
            assert_eq!(setup.end(name, false, 0), Err(Errno::EINVAL), "{bad}");
        }
        assert_eq!(setup.add_network("net0".to_owned()), Err(Errno::EEXIST));
        assert_eq!(setup.add_router("r".to_owned()), Ok(()));
        assert_eq!(setup.add_router("r".to_owned()), Err(Errno::EEXIST));
    }

    #[test]
    fn interfaces_are_on_networks_that_there_are() {
        let mut setup = with_network();
        let mut add =
            |number, network: &str, router| setup.add_interface(number, network.to_owned(), router);
        assert_eq!(add(1, "net1", None), Err(Errno::ENOENT));
        assert_eq!(add(1, "net0", Some("r")), Err(Errno::ENOENT));
        assert_eq!(add(-1, "net0", None), Err(Errno::EINVAL));
        assert_eq!(add(1, "net0", None), Ok(()));
        assert_eq!(add(1, "net0", None), Err(Errno::EEXIST));
        assert_eq!(add(2, "net0", None), Ok(()));
    }

    #[test]
    fn the_primary_address_comes_first() {
        let mut setup = with_network();
        setup.add_interface(1, "net0".to_owned(), None).unwrap();
        let mut add = |text, length, interface, primary| {
            setup.add_address(subnet(text, length)?, interface, primary, None)
        };
        assert_eq!(add("10.0.0.1", 33, 1, false), Err(Errno::EINVAL));
        assert_eq!(add("0.0.0.0", 0, 1, false), Err(Errno::EINVAL));
        assert_eq!(add("10.0.0.1", 0, 2, false), Err(Errno::ENODEV));
        assert_eq!(add("10.0.0.1", 0, 1, false), Ok(()));
        assert_eq!(add("10.0.0.1", 0, 1, false), Err(Errno::EADDRINUSE));
        assert_eq!(add("10.0.0.2", 16, 1, true), Ok(()));
        let shown: Vec<String> = setup.own.interfaces[0]
            .addresses
            .iter()
            .map(|subnet| format!("{}/{}", subnet.address, subnet.prefix_len))
            .collect();
        assert_eq!(shown, ["10.0.0.2/16", "10.0.0.1/24"]);
    }

    #[test]
    fn gateways_are_near() {
        let mut setup = with_network();
        setup.add_interface(1, "net0".to_owned(), None).unwrap();
        let own = subnet("10.0.0.1", 24).unwrap();
        setup.add_address(own, 1, true, None).unwrap();
        let mut add = |to, length, via: &str| {
            let to = Subnet::new(str::parse(to).unwrap(), length, 0).unwrap();
            let via = via.parse().unwrap();
            setup.add_route(Route { to, via }, None)
        };
        assert_eq!(add("0.0.0.0", 0, "10.0.1.9"), Err(Errno::ENETUNREACH));
        assert_eq!(add("0.0.0.0", 0, "fd00::1"), Err(Errno::EINVAL));
        assert_eq!(add("0.0.0.0", 0, "10.0.0.9"), Ok(()));
        assert_eq!(add("0.0.0.0", 0, "10.0.0.8"), Err(Errno::EEXIST));
    }

    #[test]
    fn nothing_is_declared_after_the_end() {
        let mut setup = with_network();
        assert!(!setup.is_declaring());
        setup.declare().unwrap();
        assert!(setup.is_declaring());
        setup.end("host".to_owned(), true, 3).unwrap();
        assert!(!setup.is_declaring());
        assert_eq!(setup.declare().map(|_| ()), Err(Errno::EBUSY));
    }
}
