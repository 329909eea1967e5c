# A ClassBench filter set of our own, packets at and near the bounds of its rules, and the results of a linear search.
# Format: Taylor & Turner, ClassBench, INFOCOM 2005.

import ipaddress
import random

from scapy.all import ICMP, IP, TCP, UDP, Ether, ICMPv6EchoRequest, IPv6, Raw

from making import Case

ANY = (0, 65535)
PORTS = [ANY, ANY, (53, 53), (80, 80), (1024, 65535), (0, 1023), (6000, 6063), (65535, 65535)]
FLAGS = [(0, 0), (0, 0), (0x0200, 0x1200), (0x1000, 0x1000)]  # the high byte is TCP's flags: a SYN without ACK; an ACK
NUMBERS = {4: [6, 17, 1, 0], 6: [6, 17, 58, 0]}


def make(packets_py, version, rule_count, packet_count, matched, policy):
    """`matched` and `policy`: None to let through, or the reason of the drop."""
    random.seed(version)
    bits = 32 if version == 4 else 128
    network = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    base = int(ipaddress.ip_address("10.0.0.0" if version == 4 else "2001:db8::"))

    def address(below):
        """Few values at each level, so that prefixes nest."""
        levels = [random.choice((0, 1, 3)) << bits - below for below in range(below + 4, bits + 1, 4)]
        return base | sum(levels) & (1 << bits - below) - 1

    def prefix(lengths):
        length = random.choice(lengths)
        return network((address(8 if version == 4 else 32) >> bits - length << bits - length, length))

    rules = []
    for _ in range(rule_count):
        protocol = random.choice(NUMBERS[version])
        has_ports = protocol in (6, 17)
        ports = [random.choice(PORTS) if has_ports else ANY for _ in range(2)]
        wide, narrow = ((0, 16, 20), (24, 28, 31, 32)) if version == 4 else ((0, 48, 52), (56, 64, 127, 128))
        prefixes = [prefix(narrow), prefix(random.choice((wide, narrow)))]
        random.shuffle(prefixes)
        rules.append((*prefixes, *ports, protocol, random.choice(FLAGS) if protocol == 6 else (0, 0)))

    case = Case(packets_py)
    lines = [f"@{s}\t{d}\t{a} : {b}\t{c} : {e}\t0x{p:02X}/0x{'FF' if p else '00'}\t0x{f:04X}/0x{m:04X}\t\n"
             for s, d, (a, b), (c, e), p, (f, m) in rules]
    case.file("rules.txt", "".join(lines).encode())

    def matches(rule, source, destination, sport, dport, protocol, flags):
        s, d, (a, b), (c, e), p, (f, m) = rule
        return (source in s and destination in d and a <= sport <= b and c <= dport <= e and p in (0, protocol) and
                (flags << 8) & m == f)

    def near(prefix):
        edge = random.choice((int(prefix[0]), int(prefix[-1]), int(prefix[0]) - 1, int(prefix[-1]) + 1, address(32)))
        return ipaddress.ip_address(edge % 2**bits) if version == 4 else ipaddress.IPv6Address(edge % 2**128)

    for number in range(packet_count):
        rule = random.choice(rules)
        source, destination = near(rule[0]), near(rule[1])
        protocol = rule[4] or random.choice(NUMBERS[version][:3])
        sport, dport = (min(65535, max(0, random.choice(edges) + random.choice((-1, 0, 0, 1)))) for edges in rule[2:4])
        flags = random.choice((0x02, 0x12, 0x10, 0x18, 0x04))
        ip = (IP if version == 4 else IPv6)(src=str(source), dst=str(destination))
        transport = {6: TCP(sport=sport, dport=dport, flags=flags), 17: UDP(sport=sport, dport=dport), 1: ICMP(),
                     58: ICMPv6EchoRequest()}[protocol]
        if protocol not in (6, 17):
            sport = dport = 0
        if protocol != 6:
            flags = 0
        hit = any(matches(r, source, destination, sport, dport, protocol, flags) for r in rules)
        case.packet(Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:11") / ip / transport / Raw(bytes([number & 255])),
                    drop=matched if hit else policy)
    case.write()
