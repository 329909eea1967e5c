# Shared by the cases' packets.py: each packet is stated with its expected result, from which captures and counts are
# written. scapy builds the bytes; no code of Penstock is used.

import collections
import gzip
import json
import pathlib
import struct
import subprocess

LINKS = {"bsd": 0, "ethernet": 1, "ppp": 9, "raw": 101, "hdlc": 104, "loop": 108, "sll": 113, "sll2": 276}
START = 1_800_000_000_000_000_000  # ns; packets are a little more than a millisecond apart
STEP = 1_000_111_000


def pcap(records, link="ethernet", nano=False, big_endian=False):
    """A classic capture of (time_ns, wire length, bytes)."""
    order = ">" if big_endian else "<"
    unit = 1 if nano else 1000
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, LINKS[link])]
    for time, wire, data in records:
        parts.append(struct.pack(order + "IIII", time // 10**9, time % 10**9 // unit, len(data), wire) + data)
    return b"".join(parts)


def pcapng(records, link="ethernet"):
    """One section, one interface, nanoseconds."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
             block(1, struct.pack("<HHI", LINKS[link], 0, 262144) + resolution)]
    for time, wire, data in records:
        parts.append(block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data), wire) + data))
    return b"".join(parts)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


class Case:
    """Packets come in by `packet`, in order; `write` leaves the case's files beside its packets.py."""

    def __init__(self, packets_py):
        self.folder = pathlib.Path(packets_py).parent
        self.inputs = collections.defaultdict(list)
        self.outputs = collections.defaultdict(list)
        self.dropped = collections.Counter()
        self.taken = 0

    def packet(self, frame, *, drop=None, out=None, by="out", at="in", snap=None, wire=None):
        """`frame` comes in by the capture `at`, cut to `snap`. It is dropped for the reason `drop`, or leaves as `out`
        (as it came, where that is not said) by the capture `by`."""
        time = START + self.taken * STEP
        self.taken += 1
        frame = bytes(frame)
        wire = wire or len(frame)
        self.inputs[at].append((time, wire, frame[:snap]))
        if drop:
            self.dropped[drop] += 1
        else:
            self.outputs[by].append((time, wire, bytes(frame if out is None else out)[:snap]))

    def write(self, links=None, outputs=("out",), unsupported=0, inputs=True):
        """`links` are the link types of captures that are not Ethernet. Inputs of other formats a case writes itself."""
        links = links or {}
        for name, records in self.inputs.items() if inputs else ():
            self.file(f"{name}.pcap", pcap(records, links.get(name, "ethernet")))
        for name in outputs:
            self.file(f"expected{name[3:]}.pcap", pcap(self.outputs[name], links.get(name, "ethernet")))
        forwarded = sum(len(records) for records in self.outputs.values())
        counts = {"packets": {"in": self.taken, "forwarded": forwarded, "dropped": self.dropped.total(), "consumed": 0},
                  "dropped": dict(sorted(self.dropped.items())), "unsupported": unsupported}
        self.file("expected.json", (json.dumps(counts, indent=2) + "\n").encode())

    def file(self, name, data):
        (self.folder / name).write_bytes(data)


def gzipped(data):
    return gzip.compress(data, mtime=0)


def forwarded(frame, to, source):
    """What a router makes of a scapy frame: a hop less, the header's checksum anew, other MACs."""
    from scapy.all import IP, Ether, IPv6
    frame = frame.copy()
    frame[Ether].dst, frame[Ether].src = to, source
    if IP in frame and not (IPv6 in frame and frame.layers().index(IPv6) < frame.layers().index(IP)):
        frame[IP].ttl -= 1
        del frame[IP].chksum
    else:
        frame[IPv6].hlim -= 1
    return frame
