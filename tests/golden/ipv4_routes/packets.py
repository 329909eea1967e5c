from scapy.all import ARP, ICMP, IP, TCP, UDP, Ether, IPOption_NOP, Raw

from making import Case, forwarded

case = Case(__file__)
ISP, ISP2, WEB, HOST = "02:00:00:00:01:01", "02:00:00:00:01:07", "02:00:00:00:02:50", "02:00:00:00:02:03"
WAN, DMZ = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
LAN_SIDE = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")


def to(destination, source="192.168.1.10", **ip):
    return LAN_SIDE / IP(src=source, dst=destination, **ip) / UDP(sport=4000, dport=5000) / Raw(b"sixteen bytes ok")


def leaves(frame, mac, port):
    case.packet(frame, out=forwarded(frame, mac, WAN if port == "wan" else DMZ), by=f"out-{port}")


# The longest prefix is used; of equal prefixes, the lowest metric.
leaves(to("8.8.8.8"), ISP, "wan")
leaves(to("10.1.200.1"), ISP2, "wan")
leaves(to("10.1.2.3"), HOST, "dmz")
leaves(to("10.1.2.4"), ISP2, "wan")
leaves(to("192.0.2.80"), WEB, "dmz")
leaves(to("198.51.100.1"), ISP, "wan")
leaves(to("255.255.255.254", source="192.168.1.10"), ISP, "wan")
leaves(to("169.254.1.1"), ISP, "wan")

# Packets that routes drop.
case.packet(to("10.0.0.1"), drop="router.blackhole")
case.packet(to("10.255.255.255"), drop="router.blackhole")
case.packet(to("10.2.0.1"), drop="router.unreachable")
case.packet(to("10.3.0.1"), drop="router.prohibit")
case.packet(to("10.4.0.1"), drop="router.no_route")
case.packet(to("10.5.0.1"), drop="router.no_neighbour")
case.packet(to("192.0.2.99"), drop="router.no_neighbour")
case.packet(to("192.0.2.1"), drop="router.local")
case.packet(to("192.0.2.255"), drop="router.multicast")

# TTL values that remain.
leaves(to("8.8.8.8", ttl=255), ISP, "wan")
leaves(to("8.8.8.8", ttl=2), ISP, "wan")
case.packet(to("8.8.8.8", ttl=1), drop="router.ttl_exceeded")
case.packet(to("8.8.8.8", ttl=0), drop="router.ttl_exceeded")
case.packet(to("10.0.0.1", ttl=1), drop="router.blackhole")

# Checksums must all be correct, including those near 0 and 0xffff.
for identification in range(0, 65536, 257):
    leaves(to("8.8.4.4", id=identification), ISP, "wan")
wrong = to("8.8.8.8")
wrong[IP].chksum = 0x1234
case.packet(wrong, drop="router.bad_checksum")
no_checksum = to("8.8.8.8")
no_checksum[IP].chksum = 0
case.packet(no_checksum, drop="router.bad_checksum")

# Addresses that routers do not forward (RFC 1812 §5.3.7).
for source in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255"):
    case.packet(to("8.8.8.8", source=source), drop="router.martian")
case.packet(to("127.0.0.1"), drop="router.martian")
case.packet(to("0.0.0.1"), drop="router.martian")
case.packet(to("224.0.0.251"), drop="router.multicast")
case.packet(to("239.255.255.250"), drop="router.multicast")
case.packet(to("255.255.255.255"), drop="router.multicast")

# Link-layer groups, and packets other than IP.
group = to("8.8.8.8")
group[Ether].dst = "ff:ff:ff:ff:ff:ff"
case.packet(group, drop="router.multicast")
case.packet(LAN_SIDE / ARP(pdst="192.168.1.1"), drop="router.not_ip")
case.packet(Ether(dst=LAN_SIDE.dst, src=LAN_SIDE.src, type=0x88CC) / Raw(b"a bridge speaks"), drop="router.not_ip")

# Other contents: the rest of the packet does not change.
header = dict(src="192.168.1.10", dst="8.8.8.8")
leaves(LAN_SIDE / IP(**header, tos=0xB8, flags="DF", id=7) / TCP(sport=1, dport=2, flags="S"), ISP, "wan")
leaves(LAN_SIDE / IP(**header) / ICMP() / Raw(b"ping"), ISP, "wan")
leaves(LAN_SIDE / IP(**header, proto=253) / Raw(b"experiment"), ISP, "wan")
leaves(LAN_SIDE / IP(**header, options=[IPOption_NOP()] * 4) / UDP() / Raw(b"options"), ISP, "wan")
leaves(LAN_SIDE / IP(**header) / Raw(b""), ISP, "wan")
padded = LAN_SIDE / IP(**header, len=28) / UDP(len=8, chksum=0) / Raw(bytes(18))
leaves(padded, ISP, "wan")
leaves(LAN_SIDE / IP(**header) / UDP() / Raw(bytes(1472)), ISP, "wan")
case.write(outputs=("out-wan", "out-dmz"))
