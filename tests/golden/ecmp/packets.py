import ipaddress

from scapy.all import ICMP, IP, TCP, UDP, Ether, IPv6, Raw, fragment

from making import Case, forwarded

case = Case(__file__)
ETHER = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
MACS = {"wan": "02:00:00:00:00:0a", "alt": "02:00:00:00:00:0b"}
# Weight, port, MAC of the next hop, in the order of the routes.
V4 = [(3, "wan", "02:00:00:00:01:01"), (1, "alt", "02:00:00:00:02:01"), (2, "wan", "02:00:00:00:01:07")]
V6 = [(1, "wan", "02:00:00:00:01:01"), (1, "alt", "02:00:00:00:02:01")]
M64 = 2**64 - 1
sent = {}


def mix(x):
    """MurmurHash3's fmix64."""
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & M64
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & M64
    return x ^ x >> 33


def flow_hash(ip):
    """As src/packet/flow_hash.h defines it: symmetric; without ports and protocol for fragments."""
    ends = []
    is_fragment = ip.version == 4 and (ip.flags.MF or ip.frag)
    for address, port in ((ip.src, "sport"), (ip.dst, "dport")):
        number = int(ipaddress.ip_address(address))
        end = number if ip.version == 4 else mix(number >> 64) ^ number & M64
        if not is_fragment and (TCP in ip or UDP in ip):
            end ^= getattr(ip.payload, port) << 40
        ends.append(mix(end + 0x9E3779B97F4A7C15 & M64))
    protocol = 0 if is_fragment else ip.proto if ip.version == 4 else ip.nh
    return mix(sum(ends) + protocol & M64) >> 32


def next_hop_share(ip):
    """As src/packet/flow_hash.h defines it: what one worker's flows have in common is not in it."""
    return mix(flow_hash(ip) ^ 0xBB67AE8584CAA73B) >> 32


def leaves(ip):
    hops = V4 if ip.version == 4 else V6
    share, total = next_hop_share(ip), sum(weight for weight, _, _ in hops)
    below = 0
    for weight, port, mac in hops:  # RFC 2992: the shares are cut into ranges in proportion to the weights
        below += weight
        if share < 2**32 * below // total:
            break
    sent[port, mac, ip.version] = sent.get((port, mac, ip.version), 0) + 1
    case.packet(ETHER / ip, out=forwarded(ETHER / ip, mac, MACS[port]), by=f"out-{port}")


for number in range(120):
    there = IP(src=f"192.168.1.{number}", dst="8.8.8.8") / TCP(sport=4000 + number, dport=443)
    back = IP(src="8.8.8.8", dst=f"192.168.1.{number}") / TCP(sport=443, dport=4000 + number)
    assert flow_hash(there) == flow_hash(back)
    leaves(there)
    leaves(back)
    leaves(IPv6(src=f"2001:db8::{number:x}", dst="2001:db8:1::1") / UDP(sport=4000, dport=53))
for number in range(20):
    large = IP(src=f"192.168.2.{number}", dst="8.8.8.8", id=number) / UDP(sport=4000, dport=number) / Raw(bytes(200))
    for part in fragment(IP(bytes(large)), 96):
        leaves(part)
    leaves(IP(src=f"192.168.2.{number}", dst="8.8.8.8") / ICMP())
for hop, packets in sorted(sent.items()):
    print(*hop, packets)
case.write(outputs=("out-wan", "out-alt"))
