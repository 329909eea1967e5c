from scapy.all import ICMP, IP, TCP, UDP, Ether, ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, Raw
from scapy.all import ICMPv6PacketTooBig

from making import Case

case = Case(__file__)
DENIED, REJECTED = "firewall.denied", "firewall.rejected"
INSIDE, OUTSIDE, ROUTER = "10.0.0.1", "192.0.2.7", "198.51.100.1"
INSIDE6, OUTSIDE6, ROUTER6 = "fd00::1", "2001:db8::7", "2001:db8:ffff::1"


def packet(source, destination, transport, drop=None):
    ip = IPv6 if ":" in source else IP
    case.packet(Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11") / ip(src=source, dst=destination) / transport,
                drop=drop)


def conversation(inside, outside, port):
    """One that both sides end."""
    def sends(source, flags, seq, ack, data=b"", drop=None, window=1000):
        out = source == inside
        tcp = TCP(sport=port if out else 80, dport=80 if out else port, flags=flags, seq=seq, ack=ack, window=window)
        packet(source, outside if out else inside, tcp / Raw(data), drop)
    sends(outside, "SA", 9000, 101, drop=REJECTED)
    sends(inside, "S", 100, 0)
    sends(outside, "SA", 9000, 999, drop=REJECTED)  # it acknowledges what nobody sent
    sends(outside, "SA", 9000, 101)
    sends(inside, "A", 101, 9001)
    sends(inside, "PA", 101, 9001, b"GET /")
    sends(outside, "PA", 9001, 106, b"200 OK")
    sends(outside, "R", 5_000_000, 0, drop=REJECTED)
    sends(outside, "A", 900_000, 106, b"evil", drop=REJECTED)
    sends(outside, "SF", 9007, 106, drop=REJECTED)
    sends(inside, "A", 106, 9007)
    sends(inside, "FA", 106, 9007)
    sends(outside, "FA", 9007, 107)
    sends(inside, "A", 107, 9008)


for inside, outside in ((INSIDE, OUTSIDE), (INSIDE6, OUTSIDE6)):
    conversation(inside, outside, 4000)
    # Nobody outside begins one.
    packet(outside, inside, TCP(sport=4000, dport=22, flags="S"), DENIED)
    packet(outside, inside, UDP(sport=53, dport=5000) / Raw(b"answer"), DENIED)
    packet(inside, outside, UDP(sport=5000, dport=53) / Raw(b"query"))
    packet(outside, inside, UDP(sport=53, dport=5000) / Raw(b"answer"))
    packet(outside, inside, UDP(sport=53, dport=5001) / Raw(b"answer"), DENIED)
    # A RST ends a connection at once.
    packet(inside, outside, TCP(sport=4001, dport=80, flags="S", seq=1))
    packet(outside, inside, TCP(sport=80, dport=4001, flags="RA", seq=0, ack=2))
# What a rule drops begins no connection.
packet(INSIDE, OUTSIDE, TCP(sport=4002, dport=25, flags="S", seq=1), DENIED)
packet(OUTSIDE, INSIDE, TCP(sport=25, dport=4002, flags="SA", seq=7, ack=2), REJECTED)
# Ping, and errors about it and others.
packet(OUTSIDE, INSIDE, ICMP(type=0, id=7, seq=1) / Raw(b"pong"), REJECTED)
packet(INSIDE, OUTSIDE, ICMP(type=8, id=7, seq=1) / Raw(b"ping"))
packet(OUTSIDE, INSIDE, ICMP(type=0, id=7, seq=1) / Raw(b"pong"))
packet(OUTSIDE, INSIDE, ICMP(type=8, id=8, seq=1) / Raw(b"ping"), DENIED)
# Packets are a second apart, and the query's connection would be over after 30 s.
packet(INSIDE, OUTSIDE, UDP(sport=5000, dport=53) / Raw(b"query"))
packet(INSIDE6, OUTSIDE6, UDP(sport=5000, dport=53) / Raw(b"query"))
query = IP(src=INSIDE, dst=OUTSIDE) / UDP(sport=5000, dport=53) / Raw(b"query")
for icmp_type in (3, 4, 11, 12):
    packet(ROUTER, INSIDE, ICMP(type=icmp_type) / query)
packet(ROUTER, "10.0.0.2", ICMP(type=3) / query, REJECTED)  # to another host
packet(ROUTER, INSIDE, ICMP(type=3) / IP(src=INSIDE, dst=OUTSIDE) / UDP(sport=5002, dport=53), REJECTED)
packet(OUTSIDE6, INSIDE6, ICMPv6EchoReply(id=7), REJECTED)
packet(INSIDE6, OUTSIDE6, ICMPv6EchoRequest(id=7))
packet(OUTSIDE6, INSIDE6, ICMPv6EchoReply(id=7))
query6 = IPv6(src=INSIDE6, dst=OUTSIDE6) / UDP(sport=5000, dport=53) / Raw(b"query")
packet(ROUTER6, INSIDE6, ICMPv6PacketTooBig(mtu=1280) / query6)
packet(ROUTER6, INSIDE6, ICMPv6DestUnreach(code=3) / query6)
packet(ROUTER6, "fd00::2", ICMPv6DestUnreach(code=3) / query6, REJECTED)
# No TCP sends these flags.
packet(INSIDE, OUTSIDE, TCP(sport=4003, dport=80, flags=""), REJECTED)
case.write()
