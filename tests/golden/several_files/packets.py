from scapy.all import IP, UDP, Ether, Raw

from making import Case, forwarded, gzipped, pcap, pcapng, zstd

case = Case(__file__)
MACS = dict(dst="02:00:00:00:00:01", src="02:00:00:00:00:11")
days = ["monday", "tuesday", "wednesday", "thursday", "friday"]
for day in days:
    for number in range(12):
        wan = number % 3 != 0
        frame = (Ether(**MACS) / IP(src="192.168.1.10", dst="203.0.113.80" if wan else "192.0.2.80", id=number) /
                 UDP(sport=4000 + number // 6, dport=5000) / Raw(f"{day} {number}".encode() * (1 + 7 * number)))
        case.packet(frame, at=day, out=forwarded(frame, MACS["dst"], MACS["src"]),
                    by="out-wan" if wan else "out-dmz")
records = case.inputs
case.file("monday.pcap", pcap(records["monday"], big_endian=True))
case.file("tuesday.pcapng", pcapng(records["tuesday"]))
case.file("wednesday.pcap.gz", gzipped(pcap(records["wednesday"], nano=True)))
case.file("thursday.pcap.zst", zstd(pcap(records["thursday"])))

case.file("friday.pcapng.gz", gzipped(pcapng(records["friday"])))
case.file("empty.pcap", pcap([]))
case.write(outputs=(), inputs=False)
case.file("expected-wan.pcapng.zst", zstd(pcapng(case.outputs["out-wan"])))
case.file("expected-dmz.pcap.gz", gzipped(pcap(case.outputs["out-dmz"])))
