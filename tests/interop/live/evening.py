# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A router's evening: what the programs of a home do, through the kernel's NAT and through ours with the same rules. Both must
answer alike, but for what is named below.

    la: eth0 ──── lan: gw :wan ──── eth0: lb :in ──── eth0: li
    home                             provider          internet, behind a link with a smaller MTU"""

import hashlib
import re

from home import RULES
from net import Skip, check, sh

# Of the router's own addresses, only pings from inside are answered.
OWN_ADDRESSES = """
table inet own {
 chain in {
  type filter hook input priority filter; policy drop;
  iif "lo" accept
  icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept
  iifname "lan" ip daddr 10.1.0.254 icmp type echo-request accept
  iifname "lan" ip6 daddr fd01::fe icmpv6 type echo-request accept
 }
}
"""
# Beside Penstock, the kernel forwards nothing, but sends the errors about packets whose TTL ends here (docs/kernel-routes.md).
ONLY_ERRORS = "table inet errors { chain through { type filter hook forward priority filter; policy drop; }; }"

INTERNET, PROVIDER_INSIDE = ("203.0.113.10", "fd03::10"), ("203.0.113.1", "fd03::1")
PUBLIC = ("10.2.0.254", "fd02::fe")
MTU = 1400  # between provider and internet
MEGABYTES = 3
CONTENT = bytes(range(256)) * 4096 * MEGABYTES  # of what is downloaded and uploaded

# Sends and takes megabytes, and says from where and what has come.
WEB = """
import hashlib, http.server, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        megabytes = self.path[1:]
        self.answer(bytes(range(256)) * 4096 * int(megabytes) if megabytes else self.client_address[0].encode())
    def do_PUT(self):
        self.answer(hashlib.sha256(self.rfile.read(int(self.headers['Content-Length']))).hexdigest().encode())
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
Server(('::', int(sys.argv[1])), Handler).serve_forever()
"""
# Answers questions for TXT: of 3,000 bytes if the name begins with big, where that fits, or else truncated.
NAMES = """
import socket, socketserver, struct, threading
def reply(question, most):
    end = question.index(b'\\0', 12) + 5
    name = question[12:end]
    size = most
    if struct.unpack('!H', question[10:12])[0] and most < 65535: size = max(512, struct.unpack('!H', question[end + 3:end + 5])[0])
    text = b''.join(b'\\xff' + b't' * 255 for _ in range(12)) if b'big' in name else b'\\x05small'
    answer = b'\\xc0\\x0c' + struct.pack('!HHIH', 16, 1, 60, len(text)) + text
    if 12 + len(name) + len(answer) > size: return question[:2] + struct.pack('!HHHHH', 0x8780, 1, 0, 0, 0) + name
    return question[:2] + struct.pack('!HHHHH', 0x8580, 1, 1, 0, 0) + name + answer
class Udp(socketserver.BaseRequestHandler):
    def handle(self): self.request[1].sendto(reply(self.request[0], 512), self.client_address)
class Tcp(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(2):
            answer = reply(self.rfile.read(struct.unpack('!H', head)[0]), 65535)
            self.wfile.write(struct.pack('!H', len(answer)) + answer)
class UdpServer(socketserver.ThreadingUDPServer): address_family = socket.AF_INET6
class TcpServer(socketserver.ThreadingTCPServer): address_family, allow_reuse_address = socket.AF_INET6, True
threading.Thread(target=UdpServer(('::', 53), Udp).serve_forever, daemon=True).start()
TcpServer(('::', 53), Tcp).serve_forever()
"""
# As `dig +short`: SERVER NAME TRANSPORT BYTES, where 0 are the 512 of before EDNS.
ASK = """
import socket, struct, sys
server, name, transport, size = sys.argv[1:]
question = struct.pack('!HHHHHH', 7, 0x100, 1, 0, 0, 1 if size != '0' else 0)
question += b''.join(bytes([len(label)]) + label.encode() for label in name.split('.')) + b'\\0' + struct.pack('!HH', 16, 1)
if size != '0': question += b'\\0' + struct.pack('!HHIH', 41, int(size), 0, 0)
family = socket.AF_INET6 if ':' in server else socket.AF_INET
def ask(kind):
    with socket.socket(family, kind) as s:
        s.settimeout(2)
        s.connect((server, 53))
        if kind == socket.SOCK_DGRAM:
            s.send(question)
            return s.recv(65535)
        s.sendall(struct.pack('!H', len(question)) + question)
        stream = s.makefile('rb')
        return stream.read(struct.unpack('!H', stream.read(2))[0])
answer = ask(socket.SOCK_DGRAM if transport == 'udp' else socket.SOCK_STREAM)
if answer[2] & 2: answer = ask(socket.SOCK_STREAM)
at, texts = answer.index(b'\\0', 12) + 5 + 12, []
while at < len(answer):
    texts.append('"' + answer[at + 1:at + 1 + answer[at]].decode() + '"')
    at += 1 + answer[at]
print(' '.join(texts))
"""
# What a socket says: its local error, or silence. Between namespaces, an error can come while connect() still has the socket locked; then
# it counts only for the SYN that is sent again after a second.
TRY = """
import errno, socket, sys
kind, address, port, seconds = sys.argv[1:]
with socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, getattr(socket, kind)) as s:
    s.settimeout(float(seconds))
    try:
        s.connect((address, int(port)))
        if kind == 'SOCK_DGRAM': s.send(b'?'); s.recv(100)
        print('open')
    except TimeoutError: print('silence')
    except OSError as error: print(errno.errorcode[error.errno])
"""


def has(tool):
    return sh(f"command -v {tool}", check=False) != ""


def house(make, workers=1):
    """The hosts, and the gateway's addresses: all but what translates and forwards."""
    net = make(routed=True, workers=workers)
    sh("ip netns add li && ip -n li link set lo up")
    net.make_link("ip link add eth0 netns li type veth peer name in netns lb")
    for host in ("gw", "lb", "li"):
        net.host(host, "sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv4.icmp_msgs_per_sec=100000 net.ipv4.icmp_msgs_burst=10000 net.ipv6.icmp.ratelimit=0 "
                       "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.default.send_redirects=0")
    net.host("gw", "sysctl -qw net.ipv4.conf.lan.send_redirects=0 net.ipv4.conf.wan.send_redirects=0")
    # Nothing has to be asked before an answer, so that both gateways begin alike.
    places = {("gw", "lan"): ("10.1.0.254", "fd01::fe"), ("gw", "wan"): PUBLIC, ("lb", "in"): PROVIDER_INSIDE, ("li", "eth0"): INTERNET}
    macs = {("gw", port): mac for port, mac in net.MACS.items()} | {("lb", "in"): "02:00:00:00:03:01", ("li", "eth0"): "02:00:00:00:03:0a"}
    for (host, interface), (ipv4, ipv6) in places.items():
        sh(f"ip -n {host} link set {interface} addrgenmode none address {macs[host, interface]} up {f'mtu {MTU}' if host in ('li', 'lb') else ''} && "
           f"ip -n {host} addr add {ipv4}/24 dev {interface} && ip -n {host} addr add {ipv6}/64 dev {interface} nodad")
    def knows(host, interface, addresses, mac):
        for address in addresses:
            sh(f"ip -n {host} neigh replace {address} lladdr {mac} dev {interface} nud permanent")
    knows("gw", "lan", net.addresses["la"], net.mac("la"))
    knows("gw", "wan", net.addresses["lb"], net.mac("lb"))
    knows("lb", "in", INTERNET, macs["li", "eth0"])
    knows("li", "eth0", PROVIDER_INSIDE, macs["lb", "in"])
    for host, gates in (("li", PROVIDER_INSIDE), ("gw", net.addresses["lb"])):
        for gate in gates:
            sh(f"ip -n {host} route add default via {gate}")
    # The provider knows the public addresses alone: what is not translated does not come back.
    sh("ip -n lb route del default && ip -n lb -6 route del default")
    return net


def serve(net):
    web, names = net.write("web.py", WEB), net.write("names.py", NAMES)
    net.write("ask.py", ASK)
    net.write("try.py", TRY)
    with open(net.path("upload"), "wb") as file:
        file.write(CONTENT)
    net.serve("la", f"python3 {web} 80", port=80)
    net.serve("li", f"python3 {web} 80", port=80)
    net.serve("li", f"python3 {names}", port=53)


def dig(net, server, name, transport, size):
    if has("dig"):
        options = f"+short +tries=1 +time=2 {'+tcp' if transport == 'tcp' else ''} {f'+bufsize={size}' if size else '+noedns'}"
        out = net.host("la", f"dig @{server} {name} TXT {options}", check=False)
    else:
        out = net.host("la", f"python3 {net.path('ask.py')} {server} {name} {transport} {size}", check=False)
    return f"{len(out.strip())} characters of {sorted(set(out) - set(' ' + chr(10)))}"


def curl(net, host, url, options=""):
    return net.host(host, f"curl -gs --max-time 20 {url} {options}", check=False).strip()


def checksum(net, host, url):
    """Of what is downloaded."""
    return curl(net, host, f"{url}{MEGABYTES}", "| sha256sum").split()[0]


def hops(net, host, options):
    """[(hop, who answers, and with which annotation)]"""
    out = net.host(host, f"traceroute -n -q 1 -w 0.5 -N 1 -m 4 {options}", check=False)
    return [" ".join(re.sub(r"[0-9.]+ ms", "", line).split()) for line in out.splitlines()[1:]]


def in_brackets(address):
    return f"[{address}]" if ":" in address else address


def answers_of(net):
    """What the programs say, by what they do."""
    said = {}
    for version, (internet, provider, inside, gate, public) in ((4, (INTERNET[0], "10.2.0.2", "10.1.0.1", "10.1.0.254", PUBLIC[0])),
                                                                 (6, (INTERNET[1], "fd02::2", "fd01::1", "fd01::fe", PUBLIC[1]))):
        def note(what, answer):
            said[f"IPv{version}: {what}"] = answer

        def ping(host, what, address, options=""):
            out = net.host(host, f"ping -{version} -n -c 3 -i 0.1 -W 0.5 {options} {address}", check=False)
            lines = [re.sub(r"icmp_seq=\d+ ?|time=.*", "", line).strip() for line in out.splitlines() if "bytes from" in line or "From" in line]
            note(what, sorted(set(lines)) + re.findall(r"\d+ packets.* received|\d+ duplicates", out))

        ping("la", "ping internet", internet)
        ping("la", "ping provider", provider)
        ping("la", "ping the router", gate)
        ping("la", "ping in fragments", internet, "-s 4000")
        ping("la", "ping that is too large", internet, "-s 1440 -M do")
        ping("la", "ping too few hops", internet, "-t 2")
        ping("li", "ping the public address from outside", public)
        ping("li", "ping inside from outside", inside)

        for name in ("small.example", "big.example"):
            for transport, size in (("udp", 0), ("udp", 4096), ("tcp", 0)):
                note(f"dig {name} {transport} {size}", dig(net, internet, name, transport, size))

        web = f"http://{in_brackets(internet)}/"
        note("curl says who it is", curl(net, "la", web))
        note("download", checksum(net, "la", web))
        note("upload", curl(net, "la", web, f"-T {net.path('upload')}"))
        forwarded = f"http://{in_brackets(public)}:8080/"
        note("curl from outside", curl(net, "li", forwarded))
        note("download from outside", checksum(net, "li", forwarded))
        note("upload from outside", curl(net, "li", forwarded, f"-T {net.path('upload')}"))
        note("hairpin", curl(net, "la", forwarded))
        note("download by hairpin", checksum(net, "la", forwarded))
        note("inside from outside", curl(net, "li", f"http://{in_brackets(inside)}/", "--connect-timeout 0.5"))

        nowhere = "198.51.100.1" if version == 4 else "fd04::1"
        for host, what, kind, address, port, seconds in (("la", "a closed port", "SOCK_STREAM", internet, 81, 1.3),
                                                         ("la", "a closed port", "SOCK_DGRAM", internet, 81, 1.3),
                                                         ("la", "no such host", "SOCK_STREAM", nowhere, 80, 1.3),
                                                         ("li", "a port that is not forwarded", "SOCK_STREAM", public, 8081, 0.3),
                                                         ("li", "a port that is not forwarded", "SOCK_DGRAM", public, 8081, 0.3)):
            note(f"{what}, {kind}", net.host(host, f"python3 {net.path('try.py')} {kind} {address} {port} {seconds}").strip())

        if has("traceroute"):
            for mode, options in (("UDP", ""), ("ICMP", "-I"), ("TCP", "-T -p 80"), ("TCP to a closed port", "-T -p 81")):
                note(f"traceroute, {mode}", hops(net, "la", f"-{version} {options} {internet}"))
            note("traceroute, path MTU", hops(net, "la", f"-{version} --mtu {internet}"))
            note("traceroute from outside", hops(net, "li", f"-{version} -T -p 8080 {public}"))
    return said


def by_kernel(make):
    net = house(make)
    sh(f"ip netns exec gw nft -f {net.write('home.nft', RULES)} && ip netns exec gw nft -f {net.write('own.nft', OWN_ADDRESSES)}")
    serve(net)
    said = answers_of(net)
    net.remove()
    sh("ip netns del li")
    return said


def by_penstock(make, workers):
    net = house(make, workers)
    rules = net.write("home.nft", RULES)
    sh(f"ip netns exec gw nft -f {net.write('own.nft', OWN_ADDRESSES)} && ip netns exec gw nft '{ONLY_ERRORS}'")
    serve(net)

    def firewall(hook, more=""):
        return f"  - firewall: {{rules: {rules}, hook: {hook}, connections: 1000, interfaces: {{lan: lan, wan: wan}}{more}}}\n"

    router = net.router()
    net.write("routes", "10.1.0.0/24 dev lan\n10.2.0.0/24 dev wan\ndefault via 10.2.0.2 dev wan\n"
                        "fd01::/64 dev lan\nfd02::/64 dev wan\ndefault via fd02::2 dev wan\n")
    addresses = f", addresses: {{wan: {' '.join(PUBLIC)}, lan: 10.1.0.254 fd01::fe}}"
    net.start(firewall("prerouting") + router + firewall("forward") + firewall("postrouting", addresses))
    said = answers_of(net)
    report = net.stop()
    if workers > 1:
        check(report["handed_over"]["packets"] > 1000, report["handed_over"])
    return said


def as_by_penstock(name, answer):
    """What Penstock should answer if the kernel answers this. Only one thing differs: of a packet to a port that is forwarded inside, the
    kernel beside Penstock thinks that it is for the host itself, so nobody says that its TTL has ended at the router, which sends no errors
    of its own (src/nf/router/README.md)."""
    return [answer[0], "2 *", answer[2]] if name.endswith("traceroute from outside") else answer


def evening(make, workers=1):
    if not has("nft"):
        raise Skip("nft is not installed")
    kernel, penstock = by_kernel(make), by_penstock(make, workers)
    for name, answer in kernel.items():
        print(f"{name}: {answer if len(str(answer)) < 300 else str(answer)[:300] + ' ...'}")
    different = [f"{name}:\n  kernel:   {kernel[name]}\n  Penstock: {penstock[name]}"
                 for name in kernel if penstock[name] != as_by_penstock(name, kernel[name])]
    check(not different, "answers differ:\n" + "\n".join(different))
    # And they are right.
    whole = hashlib.sha256(CONTENT).hexdigest()
    for version, gate, public, internet in ((4, "10.1.0.254", PUBLIC[0], INTERNET[0]), (6, "fd01::fe", PUBLIC[1], INTERNET[1])):
        for what, answer in (("download", whole), ("download from outside", whole), ("download by hairpin", whole), ("upload", whole),
                             ("upload from outside", whole), ("curl says who it is", public), ("curl from outside", internet), ("hairpin", gate),
                             ("inside from outside", "")):
            check(kernel[f"IPv{version}: {what}"].removeprefix("::ffff:") == answer, "IPv", version, what, kernel[f"IPv{version}: {what}"])


SCENARIOS = {"Evening": evening, "Evening4": lambda make: evening(make, workers=4)}
