# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""TCP, UDP and ping between the hosts' own stacks."""

import hashlib
import os
import socket

from net import check, entering, events, sh, spoilt

UDP_SEGMENT = 103  # linux/udp.h


def basics(make, workers):
    net = make(workers=workers)
    net.start()
    for version in (4, 6):
        check(" 0% packet loss" in net.ping(version=version), "pings are lost")
    for version in (4, 6):
        for options in ("", "-R"):
            net.iperf(options, version)
    udp = net.iperf("-u -b 20M -l 1200", bytes_="1M")["sum"]
    check(udp["packets"] > udp["lost_packets"], udp)
    report = net.stop()
    for port in ("lan", "wan"):
        check(spoilt(report, port) == 0, port, report["ports"][port])
        if net.kind.splits:
            check(events(report, port)["frames_split"] > 0, "no frame was split", report["ports"][port])
        if net.kind.completes:
            check(events(report, port)["checksums_completed"] > 0, report["ports"][port])


def url(net, host, version):
    return f"http://{net.address(host, 4) if version == 4 else '[' + net.address(host, 6) + ']'}:8000/file"


def serve_file(net, host, megabytes):
    """Serves a file over HTTP. Returns its SHA-256."""
    contents = os.urandom(megabytes << 20)
    folder = net.path(f"www-{host}")
    os.mkdir(folder)
    with open(folder + "/file", "wb") as file:
        file.write(contents)
    net.serve(host, f"python3 -m http.server -d {folder} --bind :: 8000", 8000)
    return hashlib.sha256(contents).hexdigest()


def fetch(net, client, server, version):
    """Returns the SHA-256 of what came."""
    return net.host(client, f"curl -sS --max-time 60 -g {url(net, server, version)} | sha256sum").split()[0]


def download(make, workers, chain=""):
    """Files of both hosts over HTTP, with offloads on and off at either side."""
    net = make(workers=workers)
    net.start(chain)
    sums = {host: serve_file(net, host, 8) for host in ("la", "lb")}
    for on_la, on_lb in ((True, True), (False, True), (True, False), (False, False)):
        net.offloads(on_la, ["la"])
        net.offloads(on_lb, ["lb"])
        for client, server, version in (("la", "lb", 4), ("lb", "la", 6)):
            check(fetch(net, client, server, version) == sums[server], "the file is damaged", client, on_la, on_lb)
    net.stop()


def large_download(make):
    """100 MB over HTTP in each direction, with the hosts' offloads on."""
    net = make()
    net.start()
    for client, server, version in (("la", "lb", 4), ("lb", "la", 6)):
        expected = serve_file(net, server, 100)
        check(fetch(net, client, server, version) == expected, "the file is damaged", client)
    net.stop()


def jumbo(make):
    net = make(mtu=9000)
    net.start()
    for version in (4, 6):
        check(" 0% packet loss" in net.ping(options="-c 3 -i 0.2 -W 2 -s 8900 -M do", version=version))
        net.iperf("", version)
    net.stop()


def fragments(make, workers):
    """Echo requests and replies of 14 fragments each, several flows at once."""
    net = make(workers=workers)
    net.start()
    for version in (4, 6):
        out = net.ping(options="-c 20 -i 0.1 -W 2 -s 20000", version=version)
        check(" 0% packet loss" in out, out)
    net.iperf("-u -b 20M -l 20000 -P 4", bytes_="1M")
    report = net.stop()
    for port in ("lan", "wan"):
        check(spoilt(report, port) == 0, report["ports"][port])
        if workers > 1:
            counts = report["ports"][port]["fragments"]
            check(counts["packets"] > 500 and counts["not_followed"] == 0 and counts["ambiguous"] == 0, counts)


def udp_segments(make):
    """Datagrams that the sender's stack leaves in one frame (UDP_SEGMENT), with a last one that is shorter."""
    net = make()
    net.start()
    for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6)):
        address = (net.address("lb", version), 7000)
        with entering("lb"):
            receiver = socket.socket(family, socket.SOCK_DGRAM)
        with entering("la"):
            sender = socket.socket(family, socket.SOCK_DGRAM)
        receiver.bind(address)
        receiver.settimeout(5)
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1001)
        data = os.urandom(20 * 1001 + 77)
        sender.sendto(data, address)
        got = [receiver.recv(2000) for _ in range(21)]
        check(b"".join(got) == data, "datagrams are damaged")
        check([len(one) for one in got] == 20 * [1001] + [77], [len(one) for one in got])
    report = net.stop()
    check(spoilt(report, "lan") == 0, report["ports"]["lan"])


def large_frames(make, most):
    """TCP frames of more than 64 KiB (BIG TCP)."""
    net = make()
    for host in ("la", "lb"):
        net.make_link(f"ip -n {host} link set eth0 gso_max_size {most}")
        sh(f"ip -n {host} link set eth0 gso_ipv4_max_size {most}", check=False)
        net.host(host, "sysctl -qw net.ipv4.tcp_wmem='4096 4000000 8000000'")
    net.start()
    for version in (4, 6):
        net.iperf("", version, bytes_="20M")
    counts = net.stop()["ports"]["lan"]
    # Frames that do not fit in a block of the receive ring cannot be split.
    fits = most < 256 << 10
    check((counts["lost"]["too_long"] == 0) == fits, counts)
    check(counts["lost"]["malformed_offload"] == 0, counts)
    segments = counts["events"]["segments"] / counts["events"]["frames_split"]
    check(not fits or segments > 45, "no frames of more than 64 KiB:", counts)


def tunnel(make):
    """TCP in VXLAN, which the sender's stack leaves to be split inside the tunnel."""
    net = make()
    for host, inner in (("la", "10.9.0.1"), ("lb", "10.9.0.2")):
        other = "lb" if host == "la" else "la"
        net.make_link(f"ip -n {host} link add name vx type vxlan id 5 remote {net.address(other)} dstport 4789 dev eth0")
        sh(f"ip -n {host} link set vx up mtu 1400 && ip -n {host} addr add {inner}/24 dev vx")
    net.start()
    net.serve("lb", "iperf3 -s -1 -p 5201", 5201)
    net.host("la", "iperf3 -c 10.9.0.2 -p 5201 -n 10M", timeout=30)
    report = net.stop()
    for port in ("lan", "wan"):
        check(spoilt(report, port) == 0, report["ports"][port])


SCENARIOS = {
    "Basics1": lambda make: basics(make, 1),
    "Basics2": lambda make: basics(make, 2),
    "Download1": lambda make: download(make, 1),
    "Download3": lambda make: download(make, 3),
    "LargeDownload": large_download,
    "Jumbo": jumbo,
    "Fragments2": lambda make: fragments(make, 2),
    "Fragments3": lambda make: fragments(make, 3),
    "UdpSegments": udp_segments,
    "LargeFrames": lambda make: large_frames(make, 150000),
    "LongestFrames": lambda make: large_frames(make, 500000),
    "Tunnel": tunnel,
}
