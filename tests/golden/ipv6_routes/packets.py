from scapy.all import (IP, TCP, UDP, Ether, ICMPv6EchoRequest, ICMPv6ND_NS, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                       IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN, Raw)

from making import Case, forwarded

case = Case(__file__)
ISP, ISP2, HOST, WAN = "02:00:00:00:01:01", "02:00:00:00:01:07", "02:00:00:00:01:0c", "02:00:00:00:00:0a"
LAN_SIDE = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")


def to(destination, source="2001:db8:1::10", **ip):
    return LAN_SIDE / IPv6(src=source, dst=destination, **ip) / UDP(sport=4000, dport=5000) / Raw(b"sixteen bytes ok")


def leaves(frame, mac):
    case.packet(frame, out=forwarded(frame, mac, WAN), by="out-wan")


leaves(to("2001:db8:a::1"), ISP)
leaves(to("2001:db8:a:ffff:ffff:ffff:ffff:ffff"), ISP)
leaves(to("2001:db8:a:b::1"), ISP2)
leaves(to("2001:db8:a:b::c"), HOST)
leaves(to("2001:db8:a:b::d"), ISP2)
leaves(to("2001:db8:ff::7"), ISP2)
leaves(to("2001:db8:a::1", source="fd00::1"), ISP)

case.packet(to("2001:db8:b::1"), drop="router.no_route")
case.packet(to("2001:db8:9::1"), drop="router.no_route")
case.packet(to("2001:db8:dead::1"), drop="router.blackhole")
case.packet(to("fd12::1"), drop="router.unreachable")
case.packet(to("2001:db8:beef::1"), drop="router.prohibit")
case.packet(to("2001:db8:ff::99"), drop="router.no_neighbour")
case.packet(to("2001:db8:ff::2"), drop="router.local")
case.packet(to("2001:db8:ff::"), drop="router.local")

leaves(to("2001:db8:a::1", hlim=255), ISP)
leaves(to("2001:db8:a::1", hlim=2), ISP)
case.packet(to("2001:db8:a::1", hlim=1), drop="router.ttl_exceeded")
case.packet(to("2001:db8:a::1", hlim=0), drop="router.ttl_exceeded")

# RFC 4291: loopback, unspecified, link-local, multicast. Mapped IPv4 addresses as in Linux, which drops them in
# ip6_rcv_core.
for source in ("::", "::1", "fe80::10", "febf::1", "ff02::1", "::ffff:192.0.2.1"):
    case.packet(to("2001:db8:a::1", source=source), drop="router.martian")
for destination in ("::", "::1", "fe80::1"):
    case.packet(to(destination), drop="router.martian")
case.packet(to("ff02::fb"), drop="router.multicast")
case.packet(to("ff0e::1"), drop="router.multicast")
case.packet(Ether(dst="33:33:ff:00:00:01", src=LAN_SIDE.src) / IPv6(src="fe80::10", dst="ff02::1:ff00:1", hlim=255) /
            ICMPv6ND_NS(tgt="2001:db8:1::1"), drop="router.multicast")

# Extension headers and contents do not change.
header = IPv6(src="2001:db8:1::10", dst="2001:db8:a::1", tc=0xB8, fl=0x12345)
leaves(LAN_SIDE / header / TCP(sport=1, dport=2, flags="S"), ISP)
leaves(LAN_SIDE / header / ICMPv6EchoRequest(data=b"ping"), ISP)
leaves(LAN_SIDE / header / IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]) / UDP() / Raw(b"hop by hop"), ISP)
leaves(LAN_SIDE / header / IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]) / UDP() / Raw(b"destination"), ISP)
leaves(LAN_SIDE / header / IPv6ExtHdrRouting(addresses=["2001:db8:a::2"], segleft=0) / UDP() / Raw(b"routing"), ISP)
leaves(LAN_SIDE / header / IPv6ExtHdrFragment(m=1, id=5) / UDP() / Raw(bytes(64)), ISP)
leaves(LAN_SIDE / header / IPv6ExtHdrFragment(offset=9, id=5, nh=17) / Raw(bytes(64)), ISP)
leaves(LAN_SIDE / header / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(), ISP)
leaves(LAN_SIDE / IPv6(src="2001:db8:1::10", dst="2001:db8:a::1", nh=59), ISP)
case.write(outputs=("out-wan",))
