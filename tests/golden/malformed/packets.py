from scapy.all import ICMP, IP, SCTP, TCP, UDP, Ether, IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Raw

from making import Case, forwarded

case = Case(__file__)
MACS = dict(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
ETHER = Ether(**MACS)
V4 = dict(src="192.168.1.10", dst="192.0.2.1")
V6 = dict(src="2001:db8:1::1", dst="2001:db8:2::2")
BAD_IP, BAD_TRANSPORT = "router.malformed", "firewall.malformed"


def leaves(frame):
    case.packet(frame, out=forwarded(frame, MACS["dst"], MACS["src"]))


def bad(frame, reason):
    case.packet(frame, drop=reason)


# The frame ends within its link header or its IP header, but was not cut by the capture.
whole4, whole6 = bytes(ETHER / IP(**V4) / UDP()), bytes(ETHER / IPv6(**V6) / UDP())
for length in (0, 1, 12, 13):
    bad(whole4[:length], "router.not_ip")
for length in (14, 15, 33):
    bad(whole4[:length], BAD_IP)
for length in (14, 15, 53):
    bad(whole6[:length], BAD_IP)

# IPv4: version, header length, total length.
for version in (0, 5, 6, 15):
    bad(ETHER / IP(**V4, version=version) / UDP(), BAD_IP)
for ihl in range(5):
    bad(ETHER / IP(**V4, ihl=ihl) / UDP(), BAD_IP)
bad(ETHER / IP(**V4, ihl=15) / UDP(), BAD_IP)
bad(ETHER / IP(**V4, ihl=6, len=20) / UDP(), BAD_IP)
for length in (0, 19, 29, 65535):
    bad(ETHER / IP(**V4, len=length) / UDP(), BAD_IP)
leaves(ETHER / IP(**V4, proto=253, len=20) / Raw(b"behind the packet"))

# IPv6: version, payload length, extension headers that extend beyond the packet.
bad(ETHER / IPv6(**V6, version=4) / UDP(), BAD_IP)
bad(ETHER / IPv6(**V6, plen=9) / UDP(), BAD_IP)
bad(ETHER / IPv6(**V6, plen=65535) / UDP(), BAD_IP)
leaves(ETHER / IPv6(**V6, nh=59, plen=0) / Raw(b"behind the packet"))
for extension in (IPv6ExtHdrHopByHop(len=1), IPv6ExtHdrRouting(len=4)):
    bad(ETHER / IPv6(**V6) / extension, BAD_TRANSPORT)
bad(ETHER / IPv6(**V6, nh=44) / Raw(bytes(4)), BAD_TRANSPORT)
bad(ETHER / IPv6(**V6, nh=0) / Raw(b"\x3c"), BAD_TRANSPORT)

# Invalid transport headers: filters cannot tell what they are.
for frame in (ETHER / IP(**V4, proto=6) / Raw(bytes(19)), ETHER / IP(**V4, proto=17) / Raw(bytes(7)),
              ETHER / IP(**V4, proto=1) / Raw(bytes(3)), ETHER / IP(**V4, proto=132) / Raw(bytes(11)),
              ETHER / IP(**V4) / TCP(dataofs=4), ETHER / IP(**V4) / TCP(dataofs=6), ETHER / IP(**V4) / TCP(dataofs=0),
              ETHER / IP(**V4, proto=6), ETHER / IP(**V4, proto=17, flags="MF") / Raw(bytes(7)),
              ETHER / IPv6(**V6, nh=6) / Raw(bytes(19)), ETHER / IPv6(**V6, nh=17) / Raw(bytes(7)),
              ETHER / IPv6(**V6) / TCP(dataofs=15), ETHER / IPv6(**V6, nh=58) / Raw(bytes(3))):
    bad(frame, BAD_TRANSPORT)
# Unusual, but valid.
leaves(ETHER / IP(**V4) / TCP(dataofs=15, options=[("NOP", None)] * 40))
leaves(ETHER / IP(**V4, frag=3) / Raw(b"\x01"))
leaves(ETHER / IP(**V4, proto=17, frag=3) / Raw(bytes(2)))
leaves(ETHER / IP(**V4, proto=255) / Raw(b"\x01"))
leaves(ETHER / IPv6(**V6) / IPv6ExtHdrFragment(offset=4, nh=6) / Raw(b"\x01"))
leaves(ETHER / IPv6(**V6, nh=1) / Raw(b"\x01"))
leaves(ETHER / IPv6(**V6) / ICMP())
leaves(ETHER / IP(**V4) / SCTP(sport=1, dport=2))
leaves(ETHER / IP(**V4) / Raw(b""))
case.write()
