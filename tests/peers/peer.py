# Live peers for the tests: peer.py KIND PORT
import asyncio
import fcntl
import mmap
import os
import random
import select
import signal
import socket
import sys
import termios
import threading
import time

kind = sys.argv[1]
port = 0 if kind == "unix" else int(sys.argv[2])


def lose_port():
    """The first time, lets another program take the port, and gives up."""
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, "port")
    if not os.path.exists(path):
        with open(path + ".new", "w") as file:
            file.write(str(port))
        os.rename(path + ".new", path)
        while not os.path.exists(os.path.join(folder, "taken")):
            time.sleep(0.01)
        sys.exit("the port is taken")


def listening(how=socket.SOCK_STREAM):
    sock = socket.socket(socket.AF_INET, how)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    if how == socket.SOCK_STREAM:
        sock.listen()
    return sock


def lines(conn):
    rest = b""
    while True:
        while b"\n" in rest:
            line, rest = rest.split(b"\n", 1)
            yield line
        try:
            more = conn.recv(4096)
        except OSError:
            return
        if not more:
            return
        rest += more


def echo(conn):
    for line in lines(conn):
        conn.sendall(line + b"\n")
    conn.close()


def key(conn):
    conn.sendall(b"key %06d ready\n" % random.randrange(10**6))
    echo(conn)


def counter(conn):
    global said
    for line in lines(conn):
        said += 1
        conn.sendall(b"%d %s\n" % (said, line))
    conn.close()


def dies(conn):
    for _ in lines(conn):
        # Nobody is let in between the end of this connection and that of the process.
        listener.shutdown(socket.SHUT_RDWR)
        os._exit(1)


def stalls(conn):
    time.sleep(1000)


def floods(conn):
    try:
        while True:
            conn.sendall(b"x" * 65536)
    except OSError:
        pass


def garbage(conn):
    conn.sendall(bytes(range(256)) * 4)
    conn.close()


def breaks(conn):
    for line in lines(conn):
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        conn.close()
        return


def greet(conn):
    global there
    with lock:
        there += 1
        conn.sendall(b"%d here\n" % there)


def chat(conn):
    global there
    while conn.recv(100):
        pass
    with lock:
        there -= 1
    conn.close()


def late(conn):
    # Takes its time until it notices a connection.
    time.sleep(0.05)
    greet(conn)
    chat(conn)


def log(conn):
    for line in lines(conn):
        pass
    conn.close()


def ledger():
    # One thread, many connections. What it has counted is in memory, in a file that it keeps open,
    # in the names of its folder, and in what it has not read of a pipe and a pair of sockets.
    global said
    with open(sys.argv[3], "a") as started:
        started.write("started\n")
    book = open("book", "w+")
    pipe, pair = os.pipe(), socket.socketpair()
    poller = select.epoll()
    poller.register(listener, select.EPOLLIN)
    poller.register(pipe[0], select.EPOLLIN | select.EPOLLET)
    poller.register(pair[0], select.EPOLLIN | select.EPOLLET)
    connections = {}
    while True:
        for number, _ in poller.poll():
            if number == listener.fileno():
                conn = listener.accept()[0]
                connections[conn.fileno()] = conn
                poller.register(conn, select.EPOLLIN)
                if len(sys.argv) > 4:
                    poller.modify(listener, 0)
            elif number in connections:
                line = connections[number].recv(100)
                if not line:
                    connections.pop(number).close()
                    continue
                said += 1
                book.write("x")
                book.flush()
                os.mkdir("line %d" % said)
                os.write(pipe[1], b"x")
                pair[1].send(b"x")
                waiting = [fcntl.ioctl(end, termios.FIONREAD, b"    ")[0] for end in (pipe[0], pair[0])]
                names = len([name for name in os.listdir(".") if name.startswith("line")])
                all = said, book.tell(), names, *waiting, line.strip()
                connections[number].sendall(b"%d %d %d %d %d %s\n" % all)


async def answer(reader, writer):
    global said
    while line := await reader.readline():
        said += 1
        # The loop knows the number of its process.
        await asyncio.sleep(0.001)
        writer.write(b"%d %s" % (said, line))
        await writer.drain()
    writer.close()


async def loop():
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


def serial():
    # One connection at a time; others wait.
    global said
    while True:
        conn = listener.accept()[0]
        said += 1
        for line in lines(conn):
            conn.sendall(b"%d %s\n" % (said, line))
        conn.close()


def child(conn):
    # A child of ours that must not outlive the run.
    if os.fork() == 0:
        time.sleep(1000)
    echo(conn)


def web():
    def get(conn, path):
        conn.sendall(b"GET %s HTTP/1.1\r\n\r\n" % path)
        return conn.recv(1000).split()[-1]

    for paths in [b"/a", b"/b", b"/c"], [b"/d", sys.argv[3].encode()]:
        conn = socket.create_connection(("127.0.0.1", port))
        for path in paths:
            get(conn, path)
        conn.close()


def ask():
    # A client with datagrams from two sockets; what it says next depends on the answers.
    socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    text = b"a"
    for sock in socks[0], socks[1], socks[0]:
        sock.sendto(text, ("127.0.0.1", port))
        text = sock.recv(100)[-1:] + b"b"
    socks[1].sendto(b"bye", ("127.0.0.1", port))


there, said, lock = 0, 0, threading.Lock()
if kind == "web":
    web()
elif kind == "ask":
    ask()
elif kind == "unix":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    listener.listen()
    while True:
        echo(listener.accept()[0])
elif kind in ("ledger", "serial"):
    listener = listening()
    globals()[kind]()
elif kind == "loop":
    asyncio.run(loop())
elif kind == "thread":
    threading.Thread(target=time.sleep, args=[1000], daemon=True).start()
    listener = listening()
    time.sleep(1000)
elif kind == "forked":
    if os.fork() > 0:
        listener = listening()
    time.sleep(1000)
elif kind == "timer":
    signal.alarm(1000)
    listener = listening()
    time.sleep(1000)
elif kind == "shared":
    memory = mmap.mmap(-1, 4096)
    listener = listening()
    time.sleep(1000)
elif kind == "udp":
    sock = listening(socket.SOCK_DGRAM)
    while True:
        text, sender = sock.recvfrom(4096)
        sock.sendto(b"got " + text, sender)
else:
    if kind == "taken":
        lose_port()
        kind = "echo"
    listener = listening()
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            time.sleep(1000)
        if kind == "chat":
            # Here, so that clients count in the order of their connections.
            greet(conn)
        threading.Thread(target=globals()[kind], args=[conn], daemon=True).start()
