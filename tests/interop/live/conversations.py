# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations, packet by packet, through a gateway of the kernel and through Penstock with the same rules. The same packets must come
out at the same side, byte for byte, and both gateways must list the same connections.

    la: eth0 ──── lan: gw :wan ──── eth0: lb

The hosts of the conversations are only raw sockets, so that nothing answers by itself."""

import os
import random
import re
import select
import socket
import struct
import time

from connections import normal, seconds_of
from control import Operator
from frames import checksum, mac_bytes, raw_socket
from net import Skip, check, sh

RULES = """
table inet gateway {
 chain in {
  type nat hook prerouting priority dstnat;
  iifname "wan" tcp dport 8080 dnat ip to 10.1.0.200:80
  iifname "wan" udp dport 5353 dnat ip to 10.1.0.200:53
 }
 chain through {
  type filter hook forward priority filter; policy drop;
  ct state invalid drop
  ct state established,related accept
  iifname "lan" ct state new accept
  ct status dnat accept
 }
 chain out {
  type nat hook postrouting priority srcnat;
  oifname "wan" masquerade
 }
}
"""
SILENT = "table inet own { chain in { type filter hook input priority filter; policy drop; icmpv6 type { 135, 136 } accept; }; }"
PUBLIC = ("10.2.0.254", "fd02::fe")
SERVED = "10.1.0.200"  # inside, with forwarded ports
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
SO_RCVBUFFORCE = 33
LAST = 256  # numbers of hosts are below


def number(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def ip(source, target, protocol, payload, ttl=64, wrong_sum=False):
    """`payload` has its checksum at the place of the protocol, where zero means that it is to be put there."""
    at = {6: 16, 17: 6, 1: 2, 58: 2}.get(protocol)
    if at is not None and payload[at:at + 2] == b"\0\0":
        pseudo = b"" if protocol == 1 else number(source) + number(target) + struct.pack("!II", len(payload), protocol)
        sum_ = checksum(pseudo + payload) or (0xFFFF if protocol == 17 else 0)
        payload = payload[:at] + struct.pack("!H", sum_ ^ (0x1111 if wrong_sum else 0)) + payload[at + 2:]
    if ":" in source:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, ttl) + number(source) + number(target) + payload
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 7, 0x4000, ttl, protocol, 0) + number(source) + number(target)
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


class Flow:
    """Packets between a client inside and a server outside. The server sees the gateway's address."""

    def __init__(self, run, index, version=4, port=None, server_port=80):
        self.run = run
        self.inside, self.outside = (f"10.1.0.{index}", f"10.2.0.{index}") if version == 4 else (f"fd01::{index}", f"fd02::{index}")
        self.public = PUBLIC[0 if version == 4 else 1]
        self.version, self.port, self.server_port = version, port or 2000 + index, server_port
        self.icmp = 1 if version == 4 else 58

    def tcp_of(self, ports, flags, seq, ack, data, window, options):
        options += b"\1" * (-len(options) % 4)
        return struct.pack("!HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, (5 + len(options) // 4) << 4, flags, window, 0, 0) + options + data

    def client(self, flags, seq=0, ack=0, data=b"", window=1000, options=b"", **more):
        segment = self.tcp_of((self.port, self.server_port), flags, seq, ack, data, window, options)
        return self.run.send("la", ip(self.inside, self.outside, 6, segment, **more))

    def server(self, flags, seq=0, ack=0, data=b"", window=1000, options=b"", **more):
        segment = self.tcp_of((self.server_port, self.port), flags, seq, ack, data, window, options)
        return self.run.send("lb", ip(self.outside, self.public, 6, segment, **more))

    def opens(self, client=1000, server=5000, options=b"", window=1000):
        self.client(SYN, client, options=options, window=window)
        self.server(SYN | ACK, server, client + 1, options=options, window=window)
        self.client(ACK, client + 1, server + 1, window=window)

    def udp_of(self, ports, data, sum_=0):
        return struct.pack("!HHHH", *ports, 8 + len(data), sum_) + data

    def client_udp(self, data=b"question", **more):
        return self.run.send("la", ip(self.inside, self.outside, 17, self.udp_of((self.port, self.server_port), data), **more))

    def server_udp(self, data=b"answer", **more):
        return self.run.send("lb", ip(self.outside, self.public, 17, self.udp_of((self.server_port, self.port), data), **more))

    def echo(self, host, reply, identifier, sequence=1):
        kind = {1: (8, 0), 58: (128, 129)}[self.icmp][reply]
        ends = (self.inside, self.outside) if host == "la" else (self.outside, self.public)
        return self.run.send(host, ip(*ends, self.icmp, struct.pack("!BBHHH", kind, 0, 0, identifier, sequence) + b"echo"))

    def error(self, host, kind, code, quoted, source=None, extra=0):
        """An ICMP error about the packet `quoted`, to its sender."""
        sender = quoted[12:16] if self.version == 4 else quoted[8:24]
        target = socket.inet_ntop(socket.AF_INET if self.version == 4 else socket.AF_INET6, sender)
        source = source or (self.inside if host == "la" else self.outside)
        return self.run.send(host, ip(source, target, self.icmp, struct.pack("!BBHI", kind, code, 0, extra) + quoted))

    def other(self, host, protocol, payload):
        ends = (self.inside, self.outside) if host == "la" else (self.outside, self.public)
        return self.run.send(host, ip(*ends, protocol, payload))


def whole(flow):
    flow.opens()
    flow.client(PSH | ACK, 1001, 5001, b"GET")
    flow.server(ACK, 5001, 1004)
    flow.server(PSH | ACK, 5001, 1004, b"page")
    flow.client(ACK, 1004, 5005)
    flow.client(FIN | ACK, 1004, 5005)
    flow.server(ACK, 5005, 1005)
    flow.server(FIN | ACK, 5005, 1005)
    flow.client(ACK, 1005, 5006)


def half_open(flow):
    flow.client(SYN, 1000)
    flow.client(SYN, 1000)
    flow.server(SYN | ACK, 5000, 1001)
    flow.server(SYN | ACK, 5000, 1001)


def only_a_syn(flow):
    flow.client(SYN, 1000)


def refused(flow):
    flow.client(SYN, 1000)
    flow.server(RST | ACK, 0, 1001)
    flow.client(SYN, 2000)
    flow.server(SYN | ACK, 7000, 2001)


def resets(flow):
    flow.opens()
    flow.server(RST, 5001 + 100_000)
    flow.server(RST, 5001 - 100_000)
    flow.server(RST, 5001 + 10)
    flow.client(ACK, 1001, 5001)
    flow.client(RST, 1001 + 5000)
    flow.client(PSH | ACK, 1001, 5001, b"x")
    flow.server(RST | ACK, 5001, 1002)
    flow.server(ACK, 5001, 1002)
    flow.client(ACK, 1002, 5001)


def reset_by_the_client(flow):
    flow.opens()
    flow.client(RST, 1001)
    flow.server(PSH | ACK, 5001, 1001, b"late")


def port_again(flow):
    whole(flow)
    flow.client(SYN, 900_000)  # the connection is in TIME_WAIT
    flow.server(SYN | ACK, 800_000, 900_001)
    flow.client(ACK, 900_001, 800_001)
    flow.client(SYN, 500)  # in a connection that is open
    flow.server(ACK, 800_001, 900_001)
    flow.client(RST, 900_001)
    flow.client(SYN, 100)


def out_of_order(flow):
    flow.opens(window=5000)
    flow.client(ACK, 1101, 5001, b"b" * 100, window=5000)
    flow.server(ACK, 5001, 1001, window=5000)
    flow.client(ACK, 1001, 5001, b"a" * 100, window=5000)
    flow.client(ACK, 1001, 5001, b"a" * 100, window=5000)
    flow.server(ACK, 5001, 1201, window=5000)
    flow.server(ACK, 5001, 1001, window=5000)
    flow.server(ACK, 5001, 9999, window=5000)  # of what was never sent
    flow.client(ACK, 1201 + 50_000, 5001, b"beyond", window=5000)
    flow.client(ACK, 1201 - 50_000, 5001, b"before", window=5000)
    flow.server(ACK, 5001, 1201, b"c" * 1000, window=0)
    flow.client(ACK, 1201, 6001, b"to a closed window", window=5000)
    flow.server(FIN | ACK, 6001, 1219, window=5000)
    flow.client(ACK, 1219, 6002, window=5000)


def scaled(flow):
    scale = bytes([2, 4, 5, 180, 3, 3, 7, 4, 2])
    flow.opens(options=scale, window=65_535)
    for i in range(3):
        flow.server(ACK, 5001 + 200_000 * i, 1001, b"d" * 500, window=65_535)
    flow.client(ACK, 1001, 405_501, window=65_535, options=bytes([1, 1, 5, 10]) + struct.pack("!II", 5001, 5501))
    flow.server(ACK, 5001 + 20_000_000, 1001, b"d" * 500, window=65_535)


def middle(flow):
    """A connection whose beginning nobody has seen."""
    flow.client(ACK, 7777, 8888, b"data")
    flow.server(ACK, 8888, 7781, b"answer")
    flow.client(ACK, 7781, 8894)
    flow.server(FIN | ACK, 8894, 7781)


def both_begin(flow):
    flow.client(SYN, 1000)
    flow.server(SYN, 5000)
    flow.client(SYN | ACK, 1000, 5001)
    flow.server(SYN | ACK, 5000, 1001)
    flow.client(ACK, 1001, 5001)


def from_outside(flow):
    flow.server(SYN, 1)
    flow.server(ACK, 1, 1, b"x")
    flow.server(SYN | ACK, 1, 1)
    flow.server_udp()


def strange_flags(flow):
    for flags in (0, SYN | FIN, FIN | PSH | URG, FIN, SYN | RST, 63, RST, RST | ACK, SYN | ACK, PSH):
        flow.client(flags, 1000, 1)
    flow.opens()
    for flags in (0, SYN | FIN, FIN | PSH | URG, SYN | RST, 63, PSH):
        flow.client(flags, 1001, 5001)


def early_data(flow):
    flow.client(SYN, 1000, data=b"fast")
    flow.server(SYN | ACK, 5000, 1005, data=b"open")
    flow.client(ACK, 1005, 5005)


def wrong_checksums(flow):
    flow.client(SYN, 1000, wrong_sum=True)
    flow.opens()
    flow.client(ACK, 1001, 5001, b"broken", wrong_sum=True)
    flow.server(ACK, 5001, 1001, b"broken", wrong_sum=True)
    flow.client_udp(wrong_sum=True)
    flow.client_udp()


def closes_together(flow):
    flow.opens()
    flow.client(FIN | ACK, 1001, 5001)
    flow.server(FIN | ACK, 5001, 1001)
    flow.client(ACK, 1002, 5002)
    flow.server(ACK, 5002, 1002)


def half_closed(flow):
    flow.opens()
    flow.server(FIN | ACK, 5001, 1001)
    flow.client(ACK, 1001, 5002)
    flow.client(ACK, 1001, 5002, b"more")
    flow.server(ACK, 5002, 1005)


def udp(flow):
    flow.server_udp()  # before a question
    flow.client_udp()
    flow.server_udp()
    flow.client_udp(b"")
    flow.server_udp(b"x" * 1400)
    Flow(flow.run, LAST - 1, flow.version, flow.port).server_udp()  # from another host


def udp_without_checksum(flow):
    # Of an answer only: what the client sends begins the connection with one.
    flow.client_udp()
    packet = bytearray(ip(flow.outside, flow.public, 17, flow.udp_of((flow.server_port, flow.port), b"none")))
    if flow.version == 4:
        packet[26:28] = b"\0\0"
    flow.run.send("lb", bytes(packet))


def echoes(flow):
    flow.echo("lb", True, 40)
    flow.echo("la", False, 41)
    flow.echo("lb", True, 41)
    flow.echo("la", False, 41, 2)
    flow.echo("lb", True, 42)
    flow.echo("lb", False, 41)
    flow.echo("la", False, 43)


def errors(flow):
    port_unreachable, too_big, exceeded = ((3, 3), (3, 4), (11, 0)) if flow.version == 4 else ((1, 4), (2, 0), (3, 0))
    far = "10.2.0.250" if flow.version == 4 else "fd02::250"  # a router on the way
    [question] = flow.client_udp() or [None]
    if question is not None:
        flow.error("lb", *port_unreachable, question)
        flow.error("lb", *exceeded, question, source=far)
        flow.error("lb", *exceeded, question[:48 if flow.version == 6 else 28], source=far)  # the shortest
    [answer] = flow.server_udp() or [None]
    if answer is not None:
        flow.error("la", *port_unreachable, answer)
    flow.opens()
    [data] = flow.client(ACK, 1001, 5001, b"d" * 900) or [None]
    if data is not None:
        flow.error("lb", *too_big, data, source=far, extra=600)
        flow.error("lb", *too_big, data[:200], source=far, extra=600)
    # About what the gateway has never sent.
    unknown = ip(flow.public, flow.outside, 17, flow.udp_of((1, 2), b"unknown"))
    flow.error("lb", *port_unreachable, unknown)
    flow.error("la", *port_unreachable, ip(flow.outside, flow.inside, 17, flow.udp_of((1, 2), b"unknown")))
    flow.echo("la", False, 50)
    pinged = ip(flow.public, flow.outside, flow.icmp, struct.pack("!BBHHH", 8 if flow.version == 4 else 128, 0, 0, 50, 1) + b"echo")
    flow.error("lb", *exceeded, pinged, source=far)


def forwarded(flow):
    """From a client outside to a server inside."""
    def outer(flags, seq, ack=0, data=b""):
        return flow.run.send("lb", ip(flow.outside, flow.public, 6, flow.tcp_of((flow.port, 8080), flags, seq, ack, data, 1000, b"")))

    def inner(flags, seq, ack=0, data=b""):
        return flow.run.send("la", ip(SERVED, flow.outside, 6, flow.tcp_of((80, flow.port), flags, seq, ack, data, 1000, b"")))
    outer(SYN, 1)
    inner(SYN | ACK, 100, 2)
    outer(ACK, 2, 101, b"GET")
    [page] = inner(ACK, 101, 5, b"page") or [None]
    if page is not None:
        flow.error("lb", 3, 4, page, source="10.2.0.250", extra=1300)
    outer(FIN | ACK, 5, 105)
    inner(RST, 105)
    flow.run.send("lb", ip(flow.outside, flow.public, 17, flow.udp_of((flow.port, 5353), b"name?")))
    [answer] = flow.run.send("la", ip(SERVED, flow.outside, 17, flow.udp_of((53, flow.port), b"name!"))) or [None]
    if answer is not None:
        flow.error("lb", 3, 3, answer)
    flow.run.send("lb", ip(flow.outside, flow.public, 6, flow.tcp_of((flow.port, 8081), SYN, 1, 0, b"", 1000, b"")))


def other_protocols(flow):
    for protocol, payload in ((99, b"payload"), (47, bytes([0, 0, 8, 0]) + b"gre-gre-"), (50, b"\0\0\1\1\0\0\0\1esp-esp-")):
        flow.other("la", protocol, payload)
        flow.other("lb", protocol, payload)


def same_port(flow):
    """Two clients with one port: the second one gets another port, which is drawn, and its answers."""
    server = "10.2.0.202" if flow.version == 4 else "fd02::202"
    first, second = flow, Flow(flow.run, 201, flow.version, flow.port)
    first.outside = second.outside = server
    first.client_udp()
    [packet] = second.client_udp(b"second") or [None]
    if packet is None:
        return
    at = 20 if flow.version == 4 else 40
    drawn = struct.unpack("!H", packet[at:at + 2])[0]
    flow.run.notes[-1] = (drawn != flow.port, drawn >= 1024, packet[:10], packet[12:at], packet[at + 2:at + 4], packet[at + 8:])
    flow.server_udp()
    second.port = drawn
    second.server_udp()


def many_with_one_port(flow):
    """They get ports that are drawn, and each its own answers, whichever worker has its connection."""
    server, clients = "10.2.0.202" if flow.version == 4 else "fd02::202", []
    for index in range(210, 222):
        client = Flow(flow.run, index, flow.version, flow.port, 443)
        client.outside = server
        [packet] = client.client(SYN, 1000 * index) or [None]
        if packet is None:
            return
        at = 20 if flow.version == 4 else 40
        client.drawn = struct.unpack("!H", packet[at:at + 2])[0]
        flow.run.notes[-1] = (packet[:10], packet[12:at], packet[at + 2:at + 16])
        clients.append(client)
    if len({client.drawn for client in clients}) != len(clients):
        flow.run.notes.append("two have the same port")
    for client in clients:
        inside, client.port = client.port, client.drawn
        client.server(SYN | ACK, 5000, 1000 * int(re.split("[.:]", client.inside)[-1]) + 1)
        client.server(RST, 77)
        client.port = inside
    for client in clients:
        [packet] = client.client(ACK, 1000 * int(re.split("[.:]", client.inside)[-1]) + 1, 5001) or [None]
        at = 20 if flow.version == 4 else 40
        flow.run.notes[-1] = packet and (packet[:10], packet[12:at], packet[at + 2:at + 16])
        if packet is not None:
            far = "10.2.0.250" if flow.version == 4 else "fd02::250"
            flow.error("lb", *((11, 0) if flow.version == 4 else (3, 0)), packet, source=far)


def split(packet, cuts, identifier):
    """An IPv4 packet in fragments."""
    payload, parts = packet[20:], []
    for begin, end in zip([0, *cuts], [*cuts, len(packet) - 20]):
        at = begin // 8 | (0x2000 if end < len(payload) else 0)
        header = packet[:2] + struct.pack("!HHH", 20 + end - begin, identifier, at) + packet[8:10] + b"\0\0" + packet[12:20]
        parts.append(header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload[begin:end])
    return parts


def fragments(flow):
    """Together, since the kernel lets none of a datagram pass before it has all of them."""
    def sends(host, packet, identifier):
        flow.run.holds = True
        for part in split(packet, [600], identifier):
            flow.run.send(host, part)
        flow.run.holds = False
        flow.run.wait(host)
    for i in range(4):
        sends("la", ip(flow.inside, flow.outside, 17, flow.udp_of((flow.port + i, 53), b"q" * 1000)), 77)
        sends("lb", ip(flow.outside, flow.public, 17, flow.udp_of((53, flow.port + i), b"a" * 1000)), 77)
    sends("lb", ip(flow.outside, flow.public, 17, flow.udp_of((54, flow.port), b"nobody's" * 100)), 78)


def at_random(flow, most_together=1):
    """Packets that fit, nearly fit or do not, from a seed."""
    draw = random.Random(flow.port)
    flags_of_tcp = [SYN, SYN, SYN | ACK, ACK, ACK, ACK, ACK, PSH | ACK, FIN | ACK, 0, FIN, SYN | FIN, RST, RST | ACK, SYN | RST]
    ends = [1000, 5000]
    if draw.random() < 0.3:
        flow.opens(window=draw.choice([500, 5000, 65_535]), options=draw.choice([b"", bytes([2, 4, 5, 180, 3, 3, 7, 4, 2])]))
        ends = [1001, 5001]
    for _ in range(60 // most_together):
        side = draw.randrange(2)
        flow.run.holds = True
        for _ in range(draw.randint(1, most_together)):
            send_by_chance(flow, draw, side, flags_of_tcp, ends)
        flow.run.holds = False
        flow.run.wait(("la", "lb")[side])


def send_by_chance(flow, draw, side, flags_of_tcp, ends):
    host, what = ("la", "lb")[side], draw.random()
    if what < 0.08:
        (flow.client_udp, flow.server_udp)[side](b"u" * draw.choice([0, 1, 100]))
    elif what < 0.14:
        flow.echo(host, draw.random() < 0.5, draw.choice([1, 2]))
    elif what < 0.22:
        error_by_chance(flow, draw, host, ends)
    else:
        flags = draw.choice(flags_of_tcp)
        data = b"r" * draw.choice([0, 0, 1, 100, 900]) if flags in (ACK, PSH | ACK) else b""
        off = draw.choice([0, 0, 0, 0, 1, -1, 500, -500, 70_000, -70_000, 2**31])
        seq, ack = ends[side] + off, ends[1 - side] + draw.choice([0, 0, 0, 0, 1, -1, 500, -500, 100_000])
        (flow.client, flow.server)[side](flags, seq, ack if flags & ACK else 0, data, window=draw.choice([0, 500, 5000, 65_535]),
                                         wrong_sum=draw.random() < 0.03)
        if off == 0:
            ends[side] += len(data) + (1 if flags & (SYN | FIN) else 0)


def error_by_chance(flow, draw, host, ends):
    v4 = flow.version == 4
    kind = draw.choice([(3, 3), (3, 1), (11, 0), (3, 4), (12, 0), (4, 0), (5, 1)] if v4 else [(1, 4), (1, 0), (3, 0), (2, 0), (4, 1), (137, 0)])
    if host == "la":
        quoted = ip(flow.outside, flow.inside, 6, flow.tcp_of((flow.server_port, flow.port), ACK, ends[1], ends[0], b"q", 100, b""))
    else:
        quoted = ip(flow.public, flow.outside, 6, flow.tcp_of((flow.port, flow.server_port), ACK, ends[0], ends[1], b"q", 100, b""))
    if draw.random() < 0.2:
        quoted = quoted[:draw.choice([20, 24, 28, 40] if v4 else [40, 44, 48, 60])]
    on_the_way = host == "lb" and draw.random() < 0.5
    flow.error(host, *kind, quoted, source=("10.2.0.250" if v4 else "fd02::250") if on_the_way else None, extra=draw.choice([0, 600, 1300]))


def in_bursts(flow):
    at_random(flow, 4)


CONVERSATIONS = [whole, half_open, only_a_syn, refused, resets, reset_by_the_client, port_again, out_of_order, scaled, middle, both_begin, from_outside,
                 strange_flags, early_data, wrong_checksums, closes_together, half_closed, udp, udp_without_checksum, echoes, errors, same_port,
                 many_with_one_port]
ONLY_IPV4 = [forwarded, other_protocols, fragments]
RANDOM, BURSTS = 30, 20


def plan(workers):
    """(name, conversation, number of its hosts, IP version). With several workers without bursts, whose packets may overtake each other if
    they come to different workers."""
    items = [(f"{talk.__name__}, IPv{version}", talk, version) for version in (4, 6) for talk in CONVERSATIONS]
    items += [(f"{talk.__name__}, IPv4", talk, 4) for talk in ONLY_IPV4]
    items += [(f"random {i}", at_random, 4 if i % 3 else 6) for i in range(RANDOM)]
    items += [(f"bursts {i}", in_bursts, 4 if i % 3 else 6) for i in range(BURSTS if workers == 1 else 0)]
    return [(name, talk, 10 + i, version) for i, (name, talk, version) in enumerate(items)]


class Run:
    """Sends packets, and notes what comes out. After each packet, it sends another one that always passes: when that comes out, so has all that
    the first one causes. If the gateway has several workers, it sends many, which go the ways between all of them."""

    MARKER = b"marker"

    def __init__(self, net, expected=None):
        """`expected`: how many packets come out after each, for gateways with several workers, where more may be on their way."""
        self.net, self.expected = net, expected
        self.sockets = {host: raw_socket(host) for host in ("la", "lb")}
        self.poll = select.poll()
        for raw in self.sockets.values():
            raw.setblocking(False)
            raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
            self.poll.register(raw, select.POLLIN)
        # In order, since they wait in the queue of one core.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        self.markers = {"la": [], "lb": []}
        for port in range(9000, 9001 if net.workers == 1 else 9256):
            question, answer = (struct.pack("!HHHH", *ports, 8 + len(self.MARKER), 0) + self.MARKER for ports in ((port, 10), (10, port)))
            self.markers["la"].append(ip("10.1.0.203", "10.2.0.203", 17, question))
            self.markers["lb"].append(ip("10.2.0.203", PUBLIC[0], 17, answer))
        self.holds = False  # whether packets do not wait for what comes out
        self.came = []  # after each packet or burst: how many came out
        self.notes = []  # of each packet or burst: what came out, as (host, bytes from the IP header on)
        self.wait("la")

    def put(self, host, packet):
        mac = self.net.MACS[self.net.ports[host]]
        kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
        self.sockets[host].send(mac_bytes(mac) + mac_bytes(self.net.mac(host)) + struct.pack("!H", kind) + packet)

    def send(self, host, packet):
        """Returns what arrived at the other host; nothing if it is held, to be sent together with others."""
        self.put(host, packet)
        return [] if self.holds else self.wait(host)

    def wait(self, host):
        # What must come out is waited for anyway.
        more = self.expected[len(self.came)] if self.expected and len(self.came) < len(self.expected) else 0
        markers = self.markers[host][:1] if more else self.markers[host]
        for marker in markers:
            self.put(host, marker)
        came, end, passed = [], time.monotonic() + 5, 0
        while passed < len(markers) or (len(came) < more and time.monotonic() < end - 4):
            check(time.monotonic() < end, "nothing passes after packet", len(self.notes))
            self.poll.poll(100)
            read = self.read()
            others = [(at, packet) for at, packet in read if not packet.endswith(self.MARKER)]
            passed += len(read) - len(others)
            came += others
        self.came.append(len(came))
        self.notes.append(sorted(came))
        return [packet for at, packet in came if at != host]

    def read(self):
        came = []
        for host, raw in self.sockets.items():
            while True:
                try:
                    frame, address = raw.recvfrom(70_000)
                except BlockingIOError:
                    break
                if address[2] != socket.PACKET_OUTGOING and is_ours(frame):
                    came.append((host, frame[14:14 + length_of(frame)]))
        return came

    def finish(self):
        time.sleep(0.1)
        late = self.read()
        check(late == [], "late:", late)
        for raw in self.sockets.values():
            raw.close()


def length_of(frame):
    return struct.unpack("!H", frame[16:18])[0] if frame[14] >> 4 == 4 else 40 + struct.unpack("!H", frame[18:20])[0]


def is_ours(frame):
    """Not what the hosts send by themselves."""
    kind = frame[12:14]
    if kind == b"\x08\0":
        return True
    return kind == b"\x86\xdd" and frame[38] != 0xFF and not (frame[20] == 58 and frame[54] in range(133, 138))


def house(make, workers=1):
    net = make(routed=True, workers=workers)
    for host in ("la", "lb"):
        net.host(host, "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0")
    return net


def neighbours(net):
    """(interface, address, MAC address) of the hosts that are only raw sockets."""
    for host, interface in net.ports.items():
        network = "1" if host == "la" else "2"
        for index in range(10, LAST):
            if index != 254:
                yield interface, f"10.{network}.0.{index}", net.mac(host)
                yield interface, f"fd0{network}::{index}", net.mac(host)


def talk(run, listed, workers):
    """All conversations: {name: (what came out, connections)}"""
    results = {}
    for name, conversation, index, version in plan(workers):
        first = len(run.notes)
        flow = Flow(run, index, version)
        hosts = f"{re.escape(flow.inside)}|{re.escape(flow.outside)}"
        conversation(flow)
        lines = [line for line in listed() if re.search(f"(src|dst)=({hosts}) ", compressed(line))]
        results[name] = (run.notes[first:], {normal(compressed(line)): seconds_of(line) for line in lines})
    return results


def compressed(line):
    """As by us: the kernel shows all digits of IPv6 addresses and the timeouts of GRE, and does not know the name of ESP."""
    line = re.sub(r"unknown +50 ", "esp 50 ", re.sub(r"timeout=\d+, stream_timeout=\d+ ", "", line))
    return re.sub(r"(src|dst)=([0-9a-f:]+:[0-9a-f:]+)", lambda found: f"{found[1]}={socket.inet_ntop(socket.AF_INET6, number(found[2]))}", line)


def by_kernel(make, workers):
    net = house(make)
    rules = net.write("gateway.nft", RULES)
    for interface, addresses in (("lan", ("10.1.0.254", "fd01::fe")), ("wan", PUBLIC)):
        sh(f"ip -n gw link set {interface} address {net.MACS[interface]}")
        sh(f"ip -n gw addr add {addresses[0]}/24 dev {interface} && ip -n gw addr add {addresses[1]}/64 dev {interface} nodad")
    net.host("gw", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.lan.rp_filter=0 "
                   "net.ipv4.conf.wan.rp_filter=0")
    batch = net.write("neighbours.batch", "".join(f"neigh replace {address} lladdr {mac} dev {interface} nud permanent\n"
                                                  for interface, address, mac in neighbours(net)))
    sh(f"ip -n gw -batch {batch}")
    sh(f"ip netns exec gw nft -f {rules} && ip netns exec gw nft '{SILENT}'")
    if not sh("ip netns exec gw cat /proc/net/nf_conntrack; test -e /proc/net/nf_conntrack && echo yes", check=False).endswith("yes\n"):
        raise Skip("the kernel shows no connections")
    run = Run(net)
    results = talk(run, lambda: net.host("gw", "cat /proc/net/nf_conntrack").splitlines(), workers)
    run.finish()
    net.remove()
    return results, run


def by_penstock(make, workers, expected):
    net = house(make, workers)
    rules = net.write("gateway.nft", RULES)
    operator = Operator(net)

    def firewall(hook, more=""):
        return f"  - firewall: {{rules: {rules}, hook: {hook}, connections: 10000, interfaces: {{lan: lan, wan: wan}}{more}}}\n"

    router = net.router()
    net.write("neighbours", "".join(f"{address} dev {interface} lladdr {mac} PERMANENT\n" for interface, address, mac in neighbours(net)))
    net.start(firewall("prerouting") + router + firewall("forward") + firewall("postrouting", f", addresses: {{wan: {' '.join(PUBLIC)}}}"),
              outputs=f", control: {operator.socket}")
    operator.wait_until_running()
    run = Run(net, expected)
    results = talk(run, lambda: sh(f"{net.program} ctl --socket {operator.socket} conntrack list 2>/dev/null").splitlines(), workers)
    run.finish()
    report = net.stop()
    if workers > 1:
        check(report["handed_over"]["packets"] > 100, "few packets came to another worker than their connection's:", report["handed_over"])
    return results


def shown(packets):
    return [f"{host} {packet.hex()}" for host, packet in packets]


def conversations(make, workers=1):
    if "nftables" not in sh("nft --version", check=False):
        raise Skip("nft is not installed")
    kernel, run = by_kernel(make, workers)
    penstock = by_penstock(make, workers, run.came if workers > 1 else None)
    different = []
    for name, (packets, listed) in kernel.items():
        ours, our_list = penstock[name]
        for i, (theirs, mine) in enumerate(zip(packets, ours)):
            if theirs != mine:
                different.append(f"{name}, after {i + 1}:\n  kernel:   {shown(theirs)}\n  Penstock: {shown(mine)}")
        if len(packets) != len(ours):
            different.append(f"{name}: {len(packets)} and {len(ours)} packets")
        if listed.keys() != our_list.keys() or any(abs(listed[line] - our_list[line]) > 3 for line in listed):
            different.append(f"{name}, connections:\n  kernel:   {listed}\n  Penstock: {our_list}")
    check(not different, f"{len(different)} differences:\n" + "\n".join(different))
    print(f"{len(kernel)} conversations of {len(run.notes)} packets and bursts; {sum(run.came)} packets came out; "
          f"{sum(len(listed) for _, listed in kernel.values())} connections")


SCENARIOS = {"Conversations": conversations, "Conversations4": lambda make: conversations(make, workers=4)}
