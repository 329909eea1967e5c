#!/usr/bin/env python3
# Sends captures, and similar packets, through the Linux gateway of this network namespace, and records its output.
#
# usage: linux_gateway.py EXAMPLE FOLDER     the ports' far ends are lan_far, wan_far, dmz_far
#
# Writes the input to FOLDER as {lan,wan,dmz}.pcap, and the output as kernel-{lan,wan,dmz}.pcap.

import random
import select
import socket
import struct
import sys
import time

PORTS = ("lan", "wan", "dmz")
PACKET_OUTGOING = 4
HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
# Without 0.1.2.3: Linux has forwarded it since 5.3, contrary to RFC 1812 §5.3.7.
SOURCES4 = ["192.168.1.10", "192.168.1.19", "192.168.1.20", "192.168.1.66", "192.0.2.80", "203.0.113.80", "10.0.0.1", "8.8.8.8",
            "0.0.0.0", "127.0.0.1", "127.9.9.9", "169.254.1.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"]
TARGETS4 = ["192.168.1.10", "192.0.2.80", "203.0.113.80", "203.0.113.127", "203.0.113.128", "203.0.113.255", "198.51.100.1",
            "8.8.8.8", "10.0.0.1", "172.16.0.1", "172.32.0.1", "192.168.1.1", "192.168.1.255", "192.0.2.1", "127.0.0.1",
            "0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255"]
# No link-local destinations: Linux applies its rules to them before it finds that there is no such neighbour.
SOURCES6 = ["2001:db8:1::10", "2001:db8:1::11", "2001:db8:2::80", "2001:db8:100::80", "2001:db8::1", "fd00::1", "fe80::1", "::",
            "::1", "ff02::1", "::192.0.2.1", "64:ff9b::1"]
TARGETS6 = ["2001:db8:1::10", "2001:db8:2::80", "2001:db8:100::80", "2001:db8:100:ffff::1", "2001:db8:101::1", "2001:db8:dead::1",
            "fd00::1", "2001:db8:ff::1", "2001:db8:ff::2", "2001:db8:1::1", "2001:db8:1::", "ff02::1", "ff0e::1", "::1"]


def read(path):
    data = open(path, "rb").read()
    at = 24
    while at < len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + captured]
        at += 16 + captured


def checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def another(frame, rng):
    """A packet like `frame` with one change to something that a gateway examines."""
    f = bytearray(frame)
    v4 = f[12:14] == b"\x08\x00"
    transport = 34 if v4 else 54
    protocol = f[23] if v4 else f[20]
    change = rng.choice(("hops", "source", "target", "sport", "dport", "detail", "fragment", "wrong checksum", "tos"))
    if change == "hops":
        f[22 if v4 else 21] = rng.choice((0, 1, 2, 255, rng.randrange(256)))
    elif change == "source":
        at, kind, pool = (26, socket.AF_INET, SOURCES4) if v4 else (22, socket.AF_INET6, SOURCES6)
        address = socket.inet_pton(kind, rng.choice(pool))
        f[at:at + len(address)] = address
    elif change == "target":
        at, kind, pool = (30, socket.AF_INET, TARGETS4) if v4 else (38, socket.AF_INET6, TARGETS6)
        address = socket.inet_pton(kind, rng.choice(pool))
        f[at:at + len(address)] = address
    elif change in ("sport", "dport") and protocol in (6, 17) and len(f) >= transport + 8:
        at = transport + (0 if change == "sport" else 2)
        f[at:at + 2] = struct.pack(">H", rng.choice((22, 23, 25, 53, 80, 137, 139, 443, 445, 514, 1023, 1024, 33434, 33524, 65535)))
    elif change == "detail" and protocol == 6 and len(f) >= transport + 20:
        f[transport + 13] = rng.randrange(256)
    elif change == "detail" and protocol in (1, 58):
        f[transport] = rng.choice((0, 1, 3, 8, 11, 128, 129, 133, 255))
    elif change == "fragment" and v4:
        f[20:22] = struct.pack(">H", rng.choice((0x2000, 0x4000, 0x2001, 0x0001, 0x1000, 0x8000)))
    elif change == "tos":
        f[15] ^= rng.randrange(256) if v4 else rng.randrange(16) << 4
    if v4:
        f[24:26] = b"\0\0"
        f[24:26] = struct.pack(">H", checksum(bytes(f[14:34])))
        if change == "wrong checksum":
            f[24 + rng.randrange(2)] ^= 1 << rng.randrange(8)
    return bytes(f)


def main(example, folder):
    rng = random.Random(1812)
    frames = []
    for port in PORTS:
        for frame in read(f"{example}/{port}.pcap"):
            frames.append((port, frame))
            if frame[12:14] in (b"\x08\x00", b"\x86\xdd") and frame[0] & 1 == 0:
                frames += [(port, another(frame, rng)) for _ in range(12)]

    ends, sent, came = {}, {}, {}
    for port in PORTS:
        ends[port] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        ends[port].bind((f"{port}_far", 0))
        ends[port].setblocking(False)
        for files, name in ((sent, port), (came, f"kernel-{port}")):
            files[port] = open(f"{folder}/{name}.pcap", "wb")
            files[port].write(HEADER)

    def keep(file, number, frame):
        file.write(struct.pack("<IIII", 1_800_000_000, number, len(frame), len(frame)) + frame)

    def take(wait):
        while ready := select.select(ends.values(), [], [], wait)[0]:
            for port in PORTS:
                if ends[port] in ready:
                    frame, address = ends[port].recvfrom(65536)
                    if address[2] != PACKET_OUTGOING:
                        keep(came[port], 0, frame)

    for number, (port, frame) in enumerate(frames):
        ends[port].send(frame)
        keep(sent[port], number, frame)
        if number % 32 == 31:  # not more at a time than the kernel queues
            take(0.001)
    take(0.3)


time.sleep(0.2)
main(*sys.argv[1:])
