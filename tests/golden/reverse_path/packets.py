from scapy.all import IP, UDP, Ether, IPv6, Raw

from making import Case, forwarded

case = Case(__file__)
ETHER = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
DENIED = "firewall.denied"


def packet(at, source, destination, by=None, drop=None):
    ip = IPv6 if ":" in source else IP
    frame = ETHER / ip(src=source, dst=destination) / UDP(sport=4000, dport=5000) / Raw(b"sixteen bytes ok")
    if drop:
        case.packet(frame, at=f"in-{at}", drop=drop)
    else:
        case.packet(frame, at=f"in-{at}", out=forwarded(frame, ETHER.dst, ETHER.src), by=f"out-{by}")


# The way back must be the port where the packet came.
packet("lan", "192.0.2.7", "203.0.113.9", by="wan")
packet("wan", "192.0.2.7", "203.0.113.9", drop=DENIED)
packet("wan", "203.0.113.9", "192.0.2.7", by="lan")
packet("lan", "203.0.113.9", "192.0.2.7", drop=DENIED)
packet("lan", "10.1.7.7", "203.0.113.9", by="wan")
packet("wan", "10.1.7.7", "203.0.113.9", drop=DENIED)
packet("lan", "2001:db8:1::7", "2001:db8:f::9", by="wan")
packet("wan", "2001:db8:1::7", "2001:db8:f::9", drop=DENIED)
packet("wan", "2001:db8:f::9", "2001:db8:a::7", by="lan")
packet("lan", "2001:db8:f::9", "2001:db8:a::7", drop=DENIED)
packet("lan", "2001:db8:a::7", "2001:db8:f::9", by="wan")
packet("wan", "2001:db8:a::7", "2001:db8:f::9", drop=DENIED)
# With two next hops, either of them.
packet("lan", "10.2.0.1", "203.0.113.9", by="wan")
packet("wan", "10.2.0.1", "192.0.2.7", by="lan")
# No way back.
packet("lan", "10.3.0.1", "203.0.113.9", drop=DENIED)
packet("wan", "10.3.0.1", "192.0.2.7", drop=DENIED)
# The host's own addresses come from nowhere else.
packet("lan", "192.0.2.1", "203.0.113.9", drop=DENIED)
packet("wan", "198.51.100.2", "192.0.2.7", drop=DENIED)
packet("lan", "2001:db8:1::1", "2001:db8:f::9", drop=DENIED)
packet("lan", "127.0.0.1", "203.0.113.9", drop=DENIED)
# Types of destinations.
packet("wan", "203.0.113.9", "192.0.2.255", drop=DENIED)
packet("wan", "203.0.113.9", "192.0.2.254", by="lan")
packet("lan", "192.0.2.7", "255.255.255.255", drop=DENIED)
packet("wan", "2001:db8:f::9", "2001:db8:1::", drop=DENIED)
packet("wan", "2001:db8:f::9", "2001:db8:1::2", by="lan")
case.write(outputs=("out-lan", "out-wan"))
