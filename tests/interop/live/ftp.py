# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""FTP through a home's router, active and passive: only control connections may begin, and data connections are related
to them. Clients inside reach a server outside by the router's address, and clients outside the server inside."""

import ftplib
import hashlib
import io
import os

from net import Skip, check, entering, sh

RULES = """
table inet home {
 chain in {
  type nat hook prerouting priority dstnat;
  ip daddr 10.2.0.254 tcp dport 21 dnat ip to 10.1.0.1
  ip6 daddr fd02::fe tcp dport 21 dnat ip6 to fd01::1
 }
 chain through {
  type filter hook forward priority filter; policy drop;
  ct state established,related accept
  tcp dport 21 ct state new accept
 }
 chain out {
  type nat hook postrouting priority srcnat;
  oifname "wan" masquerade
 }
}
"""
# usage: server.py. Keeps files in memory. One connection at a time for each client; says its own address in 227.
SERVER = r"""
import re, socket, socketserver
FILES = {}
def plain(address): return address.removeprefix('::ffff:')
class Session(socketserver.StreamRequestHandler):
    def say(self, text): self.wfile.write(text.encode() + b'\r\n')
    def listen(self):
        self.passive = socket.socket(self.request.family, socket.SOCK_STREAM)
        self.passive.bind((self.request.getsockname()[0], 0))
        self.passive.listen(1)
        return self.passive.getsockname()[1]
    def connect(self, address, port):
        # Only to where the commands come from, as careful servers.
        if plain(address) != plain(self.client_address[0]): return self.say(f'500 not your address: {address}')
        self.active = (self.client_address[0], port)
        self.say('200 ok')
    def data(self):
        if self.passive is not None:
            self.passive.settimeout(5)
            data = self.passive.accept()[0]
            self.passive.close()
            self.passive = None
            return data
        return socket.create_connection(self.active, timeout=5)
    def transfer(self, act):
        self.say('150 coming')
        try:
            with self.data() as data: act(data)
        except OSError as error: return self.say(f'425 {error}')
        self.say('226 done')
    def handle(self):
        self.passive = self.active = None
        self.say('220 hello')
        for line in self.rfile:
            command, _, rest = line.decode().strip().partition(' ')
            command = command.upper()
            if command == 'USER': self.say('331 password?')
            elif command == 'PASS': self.say('230 in')
            elif command in ('TYPE', 'CWD'): self.say('200 ok')
            elif command == 'PWD': self.say('257 "/" is it')
            elif command == 'PORT':
                n = rest.split(',')
                self.connect('.'.join(n[:4]), int(n[4]) * 256 + int(n[5]))
            elif command == 'EPRT':
                _, _, address, port, _ = rest.split('|')
                self.connect(str(__import__('ipaddress').ip_address(address)), int(port))
            elif command == 'PASV':
                port = self.listen()
                own = plain(self.request.getsockname()[0]).replace('.', ',')
                self.say(f'227 Entering Passive Mode ({own},{port >> 8},{port & 255}).')
            elif command == 'EPSV': self.say(f'229 Entering Extended Passive Mode (|||{self.listen()}|)')
            elif command == 'RETR' and rest in FILES: self.transfer(lambda data: data.sendall(FILES[rest]))
            elif command == 'STOR':
                def store(data): FILES[rest] = b''.join(iter(lambda: data.recv(65536), b''))
                self.transfer(store)
            elif command == 'SIZE' and rest in FILES: self.say(f'213 {len(FILES[rest])}')
            elif command == 'QUIT': return self.say('221 bye')
            else: self.say('502 no')
class Server(socketserver.ThreadingTCPServer): address_family, allow_reuse_address, daemon_threads = socket.AF_INET6, True, True
Server(('::', 21), Session).serve_forever()
"""


def store_and_fetch(host, address, passive, content):
    """By Python's client: PORT and PASV for IPv4, EPRT and EPSV for IPv6."""
    with entering(host):
        ftp = ftplib.FTP()
        ftp.connect(address, 21, timeout=10)
        try:
            ftp.login()
            ftp.set_pasv(passive)
            ftp.storbinary("STOR file", io.BytesIO(content))
            parts = []
            ftp.retrbinary("RETR file", parts.append)
            check(hashlib.sha256(b"".join(parts)).digest() == hashlib.sha256(content).digest(), "another file has come")
            check(ftp.voidcmd("TYPE I") == "200 ok", "the control connection does not go on")
            ftp.quit()
        finally:
            ftp.close()


def ftp(make, workers=1):
    net = make(routed=True, workers=workers)
    if "nftables" not in sh("nft --version", check=False):
        raise Skip("nft is not installed")
    rules, server = net.write("ftp.nft", RULES), net.write("server.py", SERVER)
    for host in ("la", "lb"):
        net.serve(host, f"python3 {server}", port=21)
    socket = net.path("control")

    def firewall(hook, more=""):
        return (f"  - firewall: {{rules: {rules}, hook: {hook}, helpers: {{ftp: 21}}, interfaces: {{lan: lan, wan: wan}}{more}}}\n")

    net.start(firewall("prerouting") + net.router() + firewall("forward")
              + firewall("postrouting", ", addresses: {wan: 10.2.0.254 fd02::fe}"), outputs=f", control: {socket}")
    content = os.urandom(2_000_000)
    transfers = 0
    for version, outside, public in ((4, "10.2.0.2", "10.2.0.254"), (6, "fd02::2", "fd02::fe")):
        for passive in (True, False):
            for host, address in (("la", outside), ("lb", public)):
                store_and_fetch(host, address, passive, content)
                transfers += 2
    # curl says EPSV and EPRT with IPv4 too.
    net.write("sent", "x" * 100_000)
    for host, address in (("la", "10.2.0.2"), ("lb", "10.2.0.254")):
        for mode in ("--ftp-pasv", "--ftp-port -"):
            net.host(host, f"curl -sS {mode} -T {net.path('sent')} ftp://{address}/b")
            net.host(host, f"curl -sS {mode} -o {net.path('got')} ftp://{address}/b")
            sh(f"cmp {net.path('sent')} {net.path('got')} && rm {net.path('got')}")
            transfers += 2
    # What was not announced does not pass.
    refused = net.host("la", "curl -sS --connect-timeout 1 http://10.2.0.2:4000/", check=False)
    check("(28)" in refused, refused)  # a timeout

    listed = sh(f"{net.program} ctl --socket {socket} conntrack list 2>/dev/null")
    control = [line for line in listed.splitlines() if "dport=21 " in line]
    check(control and all("helper=ftp" in line for line in control), listed)
    check("helper" not in "".join(line for line in listed.splitlines() if "dport=21 " not in line), listed)
    report = net.stop()
    expected = report["functions"][0]["details"]["connections"]["expected"]
    check(expected["arrived"] == transfers and expected["announced"] == transfers and expected["now"] == 0, expected, transfers)
    check(report["functions"][2]["dropped"]["packets"] > 0, report["functions"][2])
    if workers > 1:
        check(report["handed_over"]["packets"] > 1000, report["handed_over"])


SCENARIOS = {"Ftp": ftp, "Ftp4": lambda make: ftp(make, workers=4)}
