from scapy.all import ICMP, IP, SCTP, TCP, UDP, Ether, Raw

from making import Case

case = Case(__file__)
ETHER = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
DENIED, REJECTED = "firewall.denied", "firewall.rejected"


def packet(source, destination, transport, drop=None):
    case.packet(ETHER / IP(src=source, dst=destination) / transport / Raw(b"data"), drop=drop)


SERVICE, ELSEWHERE = "198.51.100.7", "203.0.113.7"
# The rule that searches the payload is left out completely, so it accepts nothing.
packet("203.0.113.80", ELSEWHERE, TCP(sport=443, dport=5000, flags="A"), DENIED)
packet("192.0.2.1", SERVICE, TCP(sport=5000, dport=80), DENIED)
packet("192.0.3.1", SERVICE, TCP(sport=5000, dport=80))
for port, drop in ((79, DENIED), (80, None), (81, DENIED), (443, None), (7999, DENIED), (8000, None), (8010, None),
                   (8011, DENIED)):
    packet("203.0.113.80", SERVICE, TCP(sport=5000, dport=port), drop)
packet("203.0.113.80", SERVICE, TCP(sport=1023, dport=81), REJECTED)
packet("203.0.113.80", SERVICE, TCP(sport=1024, dport=81), DENIED)
packet("203.0.113.80", SERVICE, SCTP(sport=5000, dport=81) / Raw(bytes(16)))
packet("10.0.0.1", SERVICE, SCTP(sport=5000, dport=81) / Raw(bytes(16)), DENIED)
# RETURN continues after the call.
packet("10.0.0.5", SERVICE, TCP(sport=5000, dport=22), REJECTED)
packet("10.0.0.4", SERVICE, TCP(sport=5000, dport=22), DENIED)
packet("10.0.0.9", ELSEWHERE, TCP(sport=5000, dport=22), REJECTED)
packet("10.0.0.10", ELSEWHERE, TCP(sport=5000, dport=22), DENIED)
packet("10.0.0.7", ELSEWHERE, UDP(sport=5000, dport=1023), REJECTED)
packet("10.0.0.7", ELSEWHERE, UDP(sport=5000, dport=1024))
# After -g there is no return: the chain's end ends the traversal.
packet("10.0.0.7", ELSEWHERE, ICMP(), DENIED)
for icmp_type, code, drop in ((3, 4, None), (3, 3, DENIED), (8, 0, DENIED)):
    packet("203.0.113.80", ELSEWHERE, ICMP(type=icmp_type, code=code), drop)
packet("203.0.113.80", ELSEWHERE, UDP(sport=53, dport=1023), DENIED)
packet("203.0.113.80", ELSEWHERE, UDP(sport=53, dport=65535))
packet("203.0.113.80", ELSEWHERE, TCP(sport=1, dport=2, flags="FPU"), DENIED)
case.write(unsupported=1)
