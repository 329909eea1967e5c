# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A router of a home: hosts inside reach those outside by its address, and outside reaches what it forwards inside."""

import json

from net import Skip, check, sh, wait_until

RULES = """
table inet home {
 chain in {
  type nat hook prerouting priority dstnat;
  ip daddr 10.2.0.254 tcp dport 8080 dnat ip to 10.1.0.1:80
  ip6 daddr fd02::fe tcp dport 8080 dnat ip6 to [fd01::1]:80
 }
 chain through {
  type filter hook forward priority filter; policy drop;
  ct state invalid drop
  ct state established,related accept
  iifname "lan" accept
  ct status dnat accept
 }
 chain out {
  type nat hook postrouting priority srcnat;
  oifname "wan" masquerade
  ip saddr 10.1.0.0/24 oifname "lan" masquerade
  ip6 saddr fd01::/64 oifname "lan" masquerade
 }
}
"""
# Answers each connection and each datagram with the address that it comes from.
SERVER = """
import socket, socketserver, sys, threading
class Tcp(socketserver.BaseRequestHandler):
    def handle(self): self.request.sendall(self.client_address[0].encode())
class Udp(socketserver.BaseRequestHandler):
    def handle(self): self.request[1].sendto(self.client_address[0].encode(), self.client_address)
class TcpServer(socketserver.ThreadingTCPServer): address_family, allow_reuse_address = socket.AF_INET6, True
class UdpServer(socketserver.ThreadingUDPServer): address_family = socket.AF_INET6
threading.Thread(target=UdpServer(('::', int(sys.argv[1])), Udp).serve_forever, daemon=True).start()
TcpServer(('::', int(sys.argv[1])), Tcp).serve_forever()
"""
# Prints what the server says, or the name of the error.
CLIENT = """
import errno, json, socket, sys
def ask(kind, address, port):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    with socket.socket(family, getattr(socket, kind)) as s:
        s.settimeout(1)
        try:
            s.connect((address, int(port)))
            if kind == 'SOCK_DGRAM': s.send(b'?')
            return s.recv(100).decode().removeprefix('::ffff:')
        except TimeoutError: return 'silence'
        except OSError as error: return errno.errorcode[error.errno]
print(json.dumps([ask(*question.split(',')) for question in sys.argv[1:]]))
"""


def follow(rules_of_kernel, workers=1):
    return lambda make: home(make, rules_of_kernel, workers)


def home(make, rules_of_kernel, workers):
    net = make(routed=True, workers=workers)
    if "nftables" not in sh("nft --version", check=False):
        raise Skip("nft is not installed")
    rules, server, client = net.write("home.nft", RULES), net.write("server.py", SERVER), net.write("client.py", CLIENT)
    net.serve("la", f"python3 {server} 80", port=80)
    net.serve("lb", f"python3 {server} 5000", port=5000)

    def firewall(hook, more=""):
        return (f"  - firewall: {{rules: {'kernel' if rules_of_kernel else rules}, hook: {hook}, connections: 1000, interfaces: {{lan: lan, wan: wan}}"
                f"{more}}}\n")

    if rules_of_kernel:
        sh(f"ip netns exec gw nft -f {rules}")
    addresses = ", addresses: {wan: 10.2.0.254 fd02::fe, lan: 10.1.0.254 fd01::fe}"
    net.start(firewall("prerouting") + net.router() + firewall("forward") + firewall("postrouting", addresses))

    def ask(host, *questions):
        return json.loads(net.host(host, f"python3 {client} " + " ".join(questions)))

    for version, outside, inside, public, gate, other in ((4, "10.2.0.2", "10.1.0.1", "10.2.0.254", "10.1.0.254", "10.2.0.2"),
                                                          (6, "fd02::2", "fd01::1", "fd02::fe", "fd01::fe", "fd02::2")):
        check(" 0% packet loss" in net.ping(version=version), "ping to the outside")
        out = ask("la", f"SOCK_STREAM,{outside},5000", f"SOCK_DGRAM,{outside},5000", f"SOCK_DGRAM,{outside},5001",
                  f"SOCK_STREAM,{outside},5001", f"SOCK_STREAM,{public},8080")
        check(out == [public, public, "ECONNREFUSED", "ECONNREFUSED", gate], "from inside, IPv", version, out)
        out = ask("lb", f"SOCK_STREAM,{public},8080", f"SOCK_STREAM,{inside},80", f"SOCK_DGRAM,{inside},80")
        check(out == [other, "silence", "silence"], "from outside, IPv", version, out)
        net.iperf("", version)
        net.iperf("-R", version)
    if rules_of_kernel:
        sh("ip netns exec gw nft add rule inet home in udp dport 7777 dnat ip to 10.1.0.1:80")
        wait_until(lambda: ask("lb", "SOCK_DGRAM,10.2.0.254,7777") == ["10.2.0.2"], "a new rule is not in use", 5)
    report = net.stop()
    details = report["functions"][0]["details"]["connections"]
    check(details["confirmed"] >= 12, details)
    check(report["functions"][2]["dropped"]["packets"] > 0, report["functions"])
    check(("handed_over" in report) == (workers > 1), report.get("handed_over"))
    if workers > 1:
        check(report["handed_over"]["packets"] > 1000, report["handed_over"])
        check(all(worker["in"]["packets"] > 0 for worker in report["by_worker"]), report["by_worker"])


SCENARIOS = {"Home": follow(False), "Home4": follow(False, workers=4), "HomeOfKernel": follow(True)}
