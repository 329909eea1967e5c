from scapy.all import IP, TCP, Dot1Q, Ether, IPv6, Raw

from making import Case, forwarded

case = Case(__file__)
MACS = dict(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
TAGS = [Dot1Q(vlan=10), Dot1Q(vlan=0, prio=5), Dot1Q(vlan=4095, id=1), Dot1Q(vlan=10) / Dot1Q(vlan=20),
        Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3)]


def leaves(frame):
    case.packet(frame, out=forwarded(frame, "02:00:00:00:01:01", "02:00:00:00:00:0a"))


for ethertype in (0x8100, 0x88A8, 0x9100):
    for tags in TAGS:
        for ip in (IP(src="192.168.1.10", dst="192.0.2.1"), IPv6(src="2001:db8:1::1", dst="2001:db8:2::2")):
            link = Ether(**MACS, type=ethertype) / tags
            leaves(link / ip / TCP(sport=5000, dport=80) / Raw(b"tagged"))
            reason = "firewall.denied" if ip.version == 4 else "firewall.rejected"
            case.packet(link / ip / TCP(sport=5000, dport=23), drop=reason)
            last = ip.copy()
            last.setfieldval("ttl" if ip.version == 4 else "hlim", 1)
            case.packet(link / last / TCP(sport=5000, dport=80), drop="router.ttl_exceeded")
leaves(Ether(**MACS) / IP(src="192.168.1.10", dst="192.0.2.1") / TCP(sport=5000, dport=80))
case.packet(Ether(**MACS) / Dot1Q(vlan=10, type=0x88CC) / Raw(b"not IP"), drop="router.not_ip")
many = Ether(**MACS)
for _ in range(9):  # a host takes them all off
    many /= Dot1Q(vlan=0)
case.packet(many / IP(src="192.168.1.10", dst="192.0.2.1") / TCP(sport=5000, dport=80), drop="firewall.malformed")
case.packet(bytes(Ether(**MACS) / Dot1Q(vlan=10, type=0x0800))[:18], drop="firewall.malformed")
case.packet(bytes(Ether(**MACS, type=0x8100)) + b"\0", drop="firewall.malformed")
case.write()
