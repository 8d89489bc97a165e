# A shop that Everett does not explore: a line in, a line out. It has five things to sell.
import socketserver
import sys

stock = 5


class Customer(socketserver.StreamRequestHandler):
    def handle(self):
        global stock
        for line in self.rfile:
            count = int(line.split()[1])
            if count > stock:
                self.wfile.write(b"sorry\n")
                continue
            stock -= count
            self.wfile.write(b"sold %d, %d left\n" % (count, stock))


class Shop(socketserver.TCPServer):
    allow_reuse_address = True


Shop(("127.0.0.1", int(sys.argv[1])), Customer).serve_forever()
