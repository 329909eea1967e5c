from scapy.all import IP, TCP, UDP, IPv6, Raw

from making import Case

case = Case(__file__)
# Each link header for IPv4 and for IPv6, and one for another protocol.
LINKS = {
    "raw": ([b""], [b""], None),
    "sll": ([bytes.fromhex("0000000100060200000000010000") + b"\x08\x00"],
            [bytes.fromhex("0000000100060200000000010000") + b"\x86\xdd"],
            bytes.fromhex("0000000100060200000000010000") + b"\x08\x06"),
    "sll2": ([b"\x08\x00" + bytes.fromhex("000000000002000100060200000000010000")],
             [b"\x86\xdd" + bytes.fromhex("000000000002000100060200000000010000")],
             b"\x08\x06" + bytes.fromhex("000000000002000100060200000000010000")),
    # In either byte order; IPv6 has different numbers on Linux, FreeBSD, NetBSD and macOS.
    "bsd": ([b"\x02\0\0\0", b"\0\0\0\x02"], [b"\x0a\0\0\0", b"\x18\0\0\0", b"\x1c\0\0\0", b"\x1e\0\0\0", b"\0\0\0\x1e"],
             b"\x07\0\0\0"),
    "loop": ([b"\0\0\0\x02"], [b"\0\0\0\x18", b"\0\0\0\x1e"], b"\x02\0\0\0"),
    # RFC 1661, RFC 1662: with and without address and control, and with the protocol in one or two bytes.
    "ppp": ([b"\xff\x03\x00\x21", b"\x00\x21", b"\x21", b"\xff\x03\x21"], [b"\xff\x03\x00\x57", b"\x00\x57", b"\x57"],
            b"\xff\x03\xc0\x21"),
    "hdlc": ([b"\x0f\x00\x08\x00", b"\x8f\x00\x08\x00"], [b"\x0f\x00\x86\xdd"], b"\x8f\x00\x80\x35"),
}


def less_one(ip):
    ip = ip.copy()
    if ip.version == 4:
        ip.ttl -= 1
        del ip.chksum
    else:
        ip.hlim -= 1
    return ip


for number, (link, (for_v4, for_v6, other)) in enumerate(LINKS.items()):
    def come(header, ip, drop=None):
        case.packet(header + bytes(ip), at=f"in-{link}", by=f"out-{link}", out=header + bytes(less_one(ip)), drop=drop)

    v4 = IP(src="192.168.1.10", dst=f"10.{number}.2.3") / TCP(sport=4000, dport=80) / Raw(b"over " + link.encode())
    v6 = IPv6(src="2001:db8:ff::1", dst=f"2001:db8:{number}::2") / UDP(sport=4000, dport=53) / Raw(b"over " + link.encode())
    for header in for_v4:
        come(header, v4)
    for header in for_v6:
        come(header, v6)
    last = v4.copy()
    last.ttl = 1
    come(for_v4[0], last, drop="router.ttl_exceeded")
    if other is not None:
        come(other, v4, drop="router.not_ip")
case.packet(b"\x75" + bytes(40), at="in-raw", drop="router.not_ip")
case.packet(b"\x02", at="in-bsd", drop="router.not_ip")
# A packet that the cooked header marks as broadcast (1) or multicast (2) is not forwarded: RFC 1812 §5.3.4.
ip = bytes(IP(src="192.168.1.10", dst="10.1.2.3") / TCP(sport=4000, dport=80))
for kind in (1, 2):
    v1, v2 = bytearray(LINKS["sll"][0][0]), bytearray(LINKS["sll2"][0][0])
    v1[1] = v2[10] = kind
    case.packet(bytes(v1) + ip, at="in-sll", drop="router.multicast")
    case.packet(bytes(v2) + ip, at="in-sll2", drop="router.multicast")
links = {f"{way}-{link}": link for link in LINKS for way in ("in", "out")}
case.write(links, outputs=[f"out-{link}" for link in LINKS])
