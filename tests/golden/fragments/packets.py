from scapy.all import ICMP, IP, UDP, Ether, IPv6, IPv6ExtHdrFragment, Raw, fragment, fragment6

from making import Case

case = Case(__file__)
ETHER = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
DATA = Raw(bytes(range(256)) * 12)


def fates(frames, accepted):
    """`accepted` has a letter for each frame: y or n."""
    for frame, letter in zip(frames, accepted, strict=True):
        case.packet(frame, drop=None if letter == "y" else "firewall.denied")


def v4(host, port, data=DATA, identification=1):
    whole = IP(src=f"10.0.0.{host}", dst="192.0.2.1", id=identification) / UDP(sport=4000, dport=port) / data
    return [ETHER / part for part in fragment(IP(bytes(whole)), 1480)]


def v6(host, port, data=DATA):
    header = IPv6(src=f"2001:db8::{host}", dst="2001:db8:1::1") / IPv6ExtHdrFragment(id=9)
    return [ETHER / part for part in fragment6(header / UDP(sport=4000, dport=port) / data, 1280)]


# -f: all fragments except the first; ! -f: first fragments and whole packets.
fates(v4(1, 53), "nyy")
fates(v4(2, 53), "ynn")
fates(v4(2, 53, Raw(b"whole")), "y")
# Only the first fragment has ports; for others, no condition on ports holds, negated or not.
fates(v4(3, 53), "ynn")
fates(v4(4, 54), "ynn")
fates(v4(4, 53), "nnn")
# A rule with only a protocol holds for all fragments.
fates(v4(5, 53), "yyy")
fates(v6(3, 53), "ynn")
fates(v6(5, 53), "yyy")
fates(v6(9, 53), "nnn")
# ICMP types are treated like ports.
ping = IP(src="10.0.0.6", dst="192.0.2.1", id=2) / ICMP() / DATA
fates([ETHER / part for part in fragment(IP(bytes(ping)), 1480)], "ynn")
# In reverse order, in which a network may deliver them.
fates(v4(3, 53, identification=3)[::-1], "nny")
# An atomic fragment (RFC 6946) is treated as a whole packet.
fates([ETHER / IPv6(src="2001:db8::3", dst="2001:db8:1::1") / IPv6ExtHdrFragment(id=9) / UDP(dport=53)], "y")
# A first fragment too small for its ports (RFC 1858): no condition on ports holds.
tiny = ETHER / IP(src="10.0.0.3", dst="192.0.2.1", flags="MF", proto=17) / Raw(bytes(4))
case.packet(tiny, drop="firewall.malformed")
case.write()
