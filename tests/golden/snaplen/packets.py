from scapy.all import GRE, IP, TCP, UDP, Ether, IPv6, IPv6ExtHdrHopByHop, Raw

from making import Case, forwarded

case = Case(__file__)
MACS = dict(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")


def cut(frame, snap, drop=None):
    case.packet(frame, drop=drop, snap=snap, out=forwarded(frame, MACS["dst"], MACS["src"]))


v4 = Ether(**MACS) / IP(src="192.168.1.10", dst="192.0.2.1")
v6 = Ether(**MACS) / IPv6(src="2001:db8:1::1", dst="2001:db8:2::2")
for link in (v4, v6):
    header = 34 if link is v4 else 54
    web = link / TCP(sport=4000, dport=443) / Raw(bytes(1000))
    telnet = link / TCP(sport=4000, dport=23) / Raw(bytes(1000))
    names = link / UDP(sport=4000, dport=53) / Raw(bytes(500))
    for frame in (web, names):
        for snap in (header + 20, header + 21, 96, 256, len(frame) - 1, len(frame)):
            cut(frame, snap)
    cut(telnet, header + 20, drop="firewall.denied")
    cut(telnet, 96, drop="firewall.denied")
    # The ports are missing, so no rule with ports can hold.
    for frame in (web, telnet):
        for snap in (header, header + 4, header + 19):
            cut(frame, snap, drop="firewall.truncated")
    cut(names, header + 7, drop="firewall.truncated")
    # No rule reads this header.
    cut(link / GRE() / Raw(bytes(100)), header + 3)
    # The IP header is missing.
    for snap in (14, 15, header - 1):
        cut(web, snap, drop="firewall.truncated")
    cut(web, 13, drop="firewall.truncated")
case.packet(v4 / UDP(), drop="firewall.truncated", snap=0)
# The protocol follows the extension header, which is cut, or not quite.
hidden = v6 / IPv6ExtHdrHopByHop() / TCP(sport=4000, dport=23) / Raw(bytes(100))
for snap in (54, 55, 61, 62, 81):
    cut(hidden, snap, drop="firewall.truncated")
cut(hidden, 82, drop="firewall.denied")
case.write()
