# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""ESP between two gateways, each with a host:

    la ──── gw1 ════ m1 ──── m2 ════ gw2 ──── lb

m1 and m2 only bridge; what is on the link between them can be looked at."""

import ctypes
import socket
import struct
import time

from chains import exchange
from frames import ipv4, mac_bytes, raw_socket, udp
from net import check, sh, spoilt, wait_until

HOSTS = ("la", "lb")
OUTER = ("192.0.2.1", "192.0.2.2")
OUTER_MACS = ("02:00:00:00:02:01", "02:00:00:00:02:02")
INNER6 = ("fd00::1", "fd00::2")  # next hops for packets that are IPv6 before they are protected
SO_ATTACH_FILTER = 26  # asm-generic/socket.h


class Sa:
    """For IPv4 or IPv6 packets from the gateway `side` to the other one, in IPv4."""

    def __init__(self, version, side):
        self.version, self.source, self.target = version, OUTER[side], OUTER[1 - side]
        self.spi = version << 12 | side
        self.key = bytes((version, side, *range(14))).hex()
        self.salt = bytes((side, version, 0, 0)).hex()

    def text(self):
        """As `ip xfrm state` prints it."""
        return (f"src {self.source} dst {self.target}\n"
                f"\tproto esp spi 0x{self.spi:08x} reqid {self.version} mode tunnel\n"
                f"\treplay-window 32 flag af-unspec\n"
                f"\taead rfc4106(gcm(aes)) 0x{self.key}{self.salt} 128\n"
                f"\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
                f"\tsel src 0.0.0.0/0 dst 0.0.0.0/0\n")


SAS = [Sa(version, side) for version in (4, 6) for side in (0, 1)]


def policies(net, side):
    """What goes to the other host leaves in the tunnel; what comes from it is accepted from there alone."""
    text = ""
    for version, bits in ((4, 32), (6, 128)):
        here, there = (f"{net.address(HOSTS[i], version)}/{bits}" for i in (side, 1 - side))
        for direction, source, target, i in (("out", here, there, side), ("fwd", there, here, 1 - side)):
            text += (f"src {source} dst {target}\n"
                     f"\tdir {direction} priority 1 ptype main\n"
                     f"\ttmpl src {OUTER[i]} dst {OUTER[1 - i]}\n"
                     f"\t\tproto esp reqid {version} mode tunnel\n")
        text += f"src {there} dst {here}\n\tdir out priority 2 ptype main\n"  # opened
    return text


def ipsec(net, side, out=""):
    """The functions that open and protect."""
    net.write("state", "".join(sa.text() for sa in SAS))
    net.write("policy", policies(net, side))
    common = "state: state, policy: policy, state_dir: numbers"
    return f"  - ipsec: {{{common}, direction: in}}\n", f"  - ipsec: {{{common}, unselected: drop{out}}}\n"


def router(net, side):
    host, peer = HOSTS[side], HOSTS[1 - side]
    routes = neighbours = ""
    for version, hop in ((4, OUTER[1 - side]), (6, INNER6[1 - side])):
        routes += f"{net.address(host, version)} dev lan\n{hop} dev wan\n{net.address(peer, version)} via {hop} dev wan\n"
        neighbours += (f"{net.address(host, version)} dev lan lladdr {net.mac(host)} PERMANENT\n"
                       f"{hop} dev wan lladdr {OUTER_MACS[1 - side]} PERMANENT\n")
    net.write("routes", routes)
    net.write("neighbours", neighbours)
    return ("  - router: {routes: routes, neighbours: neighbours, "
            f'macs: {{lan: "{net.MACS["lan"]}", wan: "{OUTER_MACS[side]}"}}}}\n')


class Middle:
    """The link between the gateways."""

    def __init__(self, net):
        net.make_link("ip link add middle netns m1 type veth peer name middle netns m2")
        for host in ("m1", "m2"):
            net.host(host, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
            net.make_link(f"ip -n {host} link add bridge type bridge mcast_snooping 0")
            for port in ("eth0", "middle"):
                sh(f"ip -n {host} link set {port} master bridge mtu 1500 up")
            sh(f"ip -n {host} link set bridge up")
        # As many frames as fit; and all that are not ESP in IPv4 ("tcpdump -dd not ip proto 50").
        self.some, self.others = (raw_socket("m1", interface="middle") for _ in range(2))
        program = ((0x28, 0, 0, 12), (0x15, 0, 3, 0x0800), (0x30, 0, 0, 23), (0x15, 0, 1, socket.IPPROTO_ESP),
                   (0x06, 0, 0, 0), (0x06, 0, 0, 0x40000))
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
        self.others.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(program), ctypes.addressof(code)))

    def wait_until_open(self):
        for host in ("m1", "m2"):
            wait_until(lambda: sh(f"ip -n {host} -d link").count("state forwarding") == 2, "a bridge is not forwarding")

    def check_esp_alone(self):
        """Only ESP between the gateways has passed, in order for each SA."""
        numbers = {(sa.source, sa.target, sa.spi): [] for sa in SAS}
        for frame in frames_in(self.some):
            check(frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_ESP, "not ESP:", frame[:60].hex())
            if struct.unpack("!H", frame[20:22])[0] & 0x1FFF == 0:  # the first or only fragment
                source, target = (socket.inet_ntoa(frame[at:at + 4]) for at in (26, 30))
                spi, number = struct.unpack("!II", frame[34:42])
                check((source, target, spi) in numbers, "not of an SA:", frame[:60].hex())
                numbers[source, target, spi].append(number)
        check(any(numbers.values()), "no ESP")
        for sa, seen in numbers.items():
            check(seen == sorted(set(seen)), sa, "sequence numbers:", seen)
        check(not list(frames_in(self.others)), "frames that are not ESP")


def frames_in(raw):
    raw.settimeout(0.05)
    try:
        while True:
            yield raw.recv(70000)
    except socket.timeout:
        pass


def gateways(make, **shape):
    """Two of them, and the link between them."""
    nets = [make(gateway=f"gw{i}", folder=f"gw{i}", ports=((host, "lan"), (f"m{i}", "wan")), **shape)
            for i, host in enumerate(HOSTS, 1)]
    return nets, Middle(nets[0])


def check_opened(report, side):
    """The other gateway's packets have been opened, all of them, by the SAs to this side."""
    check(spoilt(report, "lan") == 0 and spoilt(report, "wan") == 0, report["ports"])
    used = report["functions"][0]["details"]["sas"]
    check([int(sa["spi"], 16) for sa in used] == [sa.spi for sa in SAS if sa.target == OUTER[side]], used)
    for sa in used:
        check(sa["packets"] > 500 and sa["integrity"] == 0 and sa["replayed"] == 0, sa)


def start_router(net, side):
    net.kind.set_mtu(net, HOSTS[side], 1400)  # room for what the tunnel adds
    opens, protects = ipsec(net, side)
    net.start(opens + router(net, side) + protects)


def between_routers(make):
    nets, middle = gateways(make, routed=True)
    for side, net in enumerate(nets):
        start_router(net, side)
    middle.wait_until_open()
    exchange(nets[0])
    # In the clear, from the middle.
    raw_socket("m1").send(mac_bytes(OUTER_MACS[0]) + mac_bytes(OUTER_MACS[1]) + b"\x08\x00"
                          + ipv4(17, udp(b"forged"), nets[0].address("lb"), nets[0].address("la")))
    time.sleep(0.2)
    reports = [net.stop() for net in nets]
    for side, report in enumerate(reports):
        check_opened(report, side)
        not_protected = report["functions"][0]["dropped"]["reasons"]["not_protected"]
        check(not_protected == (1 if side == 0 else 0), "forged packets", not_protected)
    middle.check_esp_alone()


def path_mtu(make):
    """Hosts that do not know that the tunnel needs room: their packets are fragmented in it, or refused with the size
    that fits. The gateways are bumps in the wire, so errors can be answered."""
    nets, middle = gateways(make)
    for side, net in enumerate(nets):
        net.start("".join(ipsec(net, side, ", mtu: 1500")))
    middle.wait_until_open()
    net = nets[0]
    out = net.ping(options="-c 5 -i 0.2 -W 2 -s 1472 -M dont")
    check(" 0% packet loss" in out, "not fragmented:", out)
    for version, size, said in ((4, 1472, "mtu = 1446"), (6, 1452, "mtu=1446")):
        out = net.host("la", f"ping -{version} -c 1 -W 2 -s {size} -M do {net.address('lb', version)}", check=False)
        check(said in out, "no error from the gateway:", out)
    exchange(net)
    reports = [net.stop() for net in nets]
    for side, report in enumerate(reports):
        check_opened(report, side)
        check(report["functions"][0]["details"]["fragments"]["reassembled"] >= 5, report["functions"][0]["details"])
    middle.check_esp_alone()


SCENARIOS = {
    "EspRouted": between_routers,
    "EspPathMtu": path_mtu,
}
