from scapy.all import ARP, ICMP, IP, TCP, UDP, Ether, Raw

from making import Case

case = Case(__file__)
DESK, SERVER = "192.168.1.10", "203.0.113.80"
OUT = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
BACK = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")


def from_lan(frame, drop=None):
    case.packet(frame, drop=drop, at="in-lan", by="out-wan")


def from_wan(frame, drop=None):
    case.packet(frame, drop=drop, at="in-wan", by="out-lan")


for number in range(8):
    ports = dict(sport=40000 + number, dport=443)
    answer = dict(sport=443, dport=40000 + number)
    there, here = OUT / IP(src=DESK, dst=SERVER), BACK / IP(src=SERVER, dst=DESK)
    from_lan(there / TCP(**ports, flags="S"))
    from_wan(here / TCP(**answer, flags="SA"))
    from_lan(there / TCP(**ports, flags="A"))
    from_lan(there / TCP(**ports, flags="PA") / Raw(b"GET / HTTP/1.0\r\n\r\n"))
    from_wan(here / TCP(**answer, flags="PA") / Raw(b"HTTP/1.0 200 OK\r\n\r\n"))
    from_wan(here / TCP(**answer, flags="S"), drop="firewall.rejected")
    from_lan(there / UDP(sport=5000 + number, dport=53) / Raw(b"?"))
    from_wan(here / UDP(sport=53, dport=5000 + number) / Raw(b"!"))
    from_wan(here / UDP(sport=54, dport=5000 + number) / Raw(b"!"), drop="firewall.rejected")
from_lan(OUT / IP(src="10.0.0.1", dst=SERVER) / UDP(), drop="firewall.rejected")
from_lan(OUT / IP(src="10.0.0.1", dst=SERVER) / ICMP())
from_wan(BACK / IP(src=SERVER, dst=DESK) / ICMP(type=3, code=1))
from_lan(Ether(dst="ff:ff:ff:ff:ff:ff", src=OUT.src) / ARP(pdst="192.168.1.1"))
from_wan(BACK / ARP(op=2, psrc="192.168.1.1"))
case.write(outputs=("out-lan", "out-wan"))
