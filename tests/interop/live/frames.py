# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames from raw sockets: each must arrive unchanged, once, and nowhere else."""

import socket
import struct
import time

from net import check, entering, events, received_by, spoilt

SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR = 263, 8, 15  # linux/if_packet.h
STATUS_VLAN_VALID, STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
ETH_P_ALL = 0x0003
NOBODY = "02:00:00:00:00:99"  # a MAC address to which no host answers


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    """RFC 1071, word by word."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(protocol, payload, source="10.1.0.1", target="10.1.0.2", fragment=0x4000, identification=7):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), identification, fragment, 64, protocol, 0,
                         socket.inet_aton(source), socket.inet_aton(target))
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def pseudo(protocol, length, source="10.1.0.1", target="10.1.0.2"):
    return socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!HH", protocol, length)


def udp(payload, source_port=5000, target_port=6000, complete=True):
    """`complete`: with its checksum. Otherwise with that of the pseudo header, as a frame whose checksum is partial."""
    length = 8 + len(payload)
    header = struct.pack("!HHH", source_port, target_port, length)
    if complete:
        sum_ = checksum(pseudo(17, length) + header + b"\0\0" + payload) or 0xFFFF
    else:
        sum_ = ~checksum(pseudo(17, length)) & 0xFFFF
    return header + struct.pack("!H", sum_) + payload


def tcp(payload, sequence, flags, sum_=0):
    return struct.pack("!HHIIBBHHH", 5000, 6000, sequence, 1, 5 << 4, flags, 1000, sum_, 0) + payload


def raw_socket(host, with_header=False, interface="eth0"):
    with entering(host):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    raw.bind((interface, ETH_P_ALL))
    raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    if with_header:
        raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    raw.settimeout(5)
    return raw


def receive(raw):
    """The next frame that came from outside, with its VLAN tag."""
    while True:
        frame, ancillary, _, address = raw.recvmsg(70000, 512)
        if address[2] == socket.PACKET_OUTGOING:
            continue
        for level, kind, data in ancillary:
            if (level, kind) != (SOL_PACKET, PACKET_AUXDATA):
                continue
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
            if status & STATUS_VLAN_VALID:
                type_ = tpid if status & STATUS_VLAN_TPID_VALID else 0x8100
                frame = frame[:12] + struct.pack("!HH", type_, tci) + frame[12:]
        return frame


def ethernet(net, host, tags=b"", to=None):
    other = "lb" if host == "la" else "la"
    return mac_bytes(to or net.mac(other)) + mac_bytes(net.mac(host)) + tags


def tag(type_, tci):
    return struct.pack("!HH", type_, tci)


TAGS = {"none": b"", "802.1Q": tag(0x8100, 0xB005), "802.1ad": tag(0x88A8, 0x0FFE) + tag(0x8100, 5),
        "priority": tag(0x8100, 0xE000), "two": tag(0x8100, 1) + tag(0x8100, 2)}


def vlans(make, workers):
    net = make(workers=workers, ipv6=False)
    net.start()
    for source, target in (("la", "lb"), ("lb", "la")):
        sender, receiver = raw_socket(source), raw_socket(target)
        partial = raw_socket(source, with_header=True)
        for name, tags in TAGS.items():
            if name in net.kind.lost_tags:
                continue
            for length in (18, 19, 1400):
                payload = bytes(i % 251 for i in range(length))
                head = ethernet(net, source, tags) + b"\x08\x00"
                frame = head + ipv4(17, udp(payload))
                sender.send(frame)
                check(receive(receiver) == frame, "changed:", name, length)
                if not net.kind.completes:
                    continue
                # virtio_net_hdr: the checksum begins after the IP header, and is 6 bytes from there.
                start = len(head) + 20
                partial.send(struct.pack("=BBHHHH", 1, 0, 0, 0, start, 6) + head + ipv4(17, udp(payload, complete=False)))
                check(receive(receiver) == frame, "changed, with a partial checksum:", name, length)
    report = net.stop()
    for port in ("lan", "wan"):
        check(spoilt(report, port) == 0, report["ports"][port])
        if net.kind.completes:
            check(events(report, port)["checksums_completed"] == 15, report["ports"][port])


def segments(make, workers):
    """A tagged TCP frame of 20 segments from a raw socket, and what arrives, byte for byte."""
    net = make(workers=workers, ipv6=False)
    net.start()
    net.offloads(False, ["lb"])
    receiver, sender = raw_socket("lb"), raw_socket("la", with_header=True)
    payload = bytes(i * 7 % 256 for i in range(19 * 1000 + 333))
    all_flags = 0xFF  # CWR, ECE, URG, ACK, PSH, RST, SYN, FIN
    flags = all_flags & ~0x26  # without those that Linux does not split: URG, SYN, RST
    for tags in (b"", TAGS["802.1Q"]):
        head = ethernet(net, "la", tags) + b"\x08\x00"
        segment = tcp(payload, 0xFFFFF000, flags, ~checksum(pseudo(6, 20 + len(payload))) & 0xFFFF)
        sender.send(struct.pack("=BBHHHH", 1, 0x81, len(head) + 40, 1000, len(head) + 20, 16) + head
                    + ipv4(6, segment, identification=0xFFFA))
        for i in range(20):
            part = payload[i * 1000:(i + 1) * 1000]
            wanted = flags
            if i < 19:
                wanted &= ~0x09
            if i > 0:
                wanted &= ~0x80
            bare = tcp(part, (0xFFFFF000 + i * 1000) % (1 << 32), wanted)
            sum_ = checksum(pseudo(6, len(bare)) + bare)
            expected = head + ipv4(6, tcp(part, (0xFFFFF000 + i * 1000) % (1 << 32), wanted, sum_),
                                   identification=(0xFFFA + i) & 0xFFFF)
            got = receive(receiver)
            check(got == expected, "segment", i, got[:80].hex(), expected[:80].hex())
    report = net.stop()
    check(events(report, "lan")["frames_split"] == 2 and events(report, "lan")["segments"] == 40, report["ports"]["lan"])


def own_frames(make, workers):
    """What Penstock sends does not come back to it, and it sends every frame once."""
    net = make(workers=workers, ipv6=False)
    net.start()
    count = 400
    receiver, sender = raw_socket("lb"), raw_socket("la")
    head = ethernet(net, "la", to=NOBODY) + b"\x08\x00"
    frames = [head + ipv4(17, udp(struct.pack("!I", i) * 10, source_port=5000 + i % 50)) for i in range(count)]
    for i, frame in enumerate(frames):
        sender.send(frame)
        if i % 50 == 0:
            time.sleep(0.01)
    got = sorted(receive(receiver) for _ in range(count))
    check(got == sorted(frames), "not the frames that were sent")
    receiver.settimeout(0.3)
    try:
        check(False, "one frame too many:", receive(receiver).hex())
    except socket.timeout:
        pass
    report = net.stop()
    check(received_by(report, "lan") == count and received_by(report, "wan") == 0, report["ports"])
    if net.kind.most_copied is not None and workers == 1:  # frames for other workers are copied
        check(events(report, "lan")["frames_lent"] >= count - net.kind.most_copied, report["ports"]["lan"])


SCENARIOS = {
    "Vlans1": lambda make: vlans(make, 1),
    "Vlans2": lambda make: vlans(make, 2),
    "Segments1": lambda make: segments(make, 1),
    "Segments2": lambda make: segments(make, 2),
    "OwnFrames1": lambda make: own_frames(make, 1),
    "OwnFrames2": lambda make: own_frames(make, 2),
}
