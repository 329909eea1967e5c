# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""ESP between two gateways, each with a host:

    la ──── gw1 ════ m1 ──── m2 ════ gw2 ──── lb

m1 and m2 only bridge; what is on the link between them can be looked at."""

import ctypes
import socket
import struct
import time

from frames import ipv4, mac_bytes, raw_socket, udp
from net import check, sh, spoilt, wait_until

HOSTS = ("la", "lb")
OUTER = ("192.0.2.1", "192.0.2.2")
OUTER_MACS = ("02:00:00:00:02:01", "02:00:00:00:02:02")
INNER6 = ("fd00::1", "fd00::2")  # next hops for packets that are IPv6 before they are protected
SPIS = (0x1001, 0x1002)  # of the SAs from the first gateway to the second, and back
KEYS = ("0102030405060708090a0b0c0d0e0f1011121314", "2122232425262728292a2b2c2d2e2f3031323334")
SO_ATTACH_FILTER = 26  # asm-generic/socket.h


def states():
    """As `ip xfrm state` prints them, on both gateways."""
    return "".join(f"""src {OUTER[i]} dst {OUTER[1 - i]}
	proto esp spi 0x{SPIS[i]:08x} reqid 1 mode tunnel
	replay-window 32 flag af-unspec
	aead rfc4106(gcm(aes)) 0x{KEYS[i]} 128
	anti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
	sel src 0.0.0.0/0 dst 0.0.0.0/0
""" for i in (0, 1))


def policies(net, side):
    """What goes to the other host leaves in the tunnel; what comes from it is accepted from there alone."""
    text = ""
    for version, bits in ((4, 32), (6, 128)):
        here, there = (f"{net.address(HOSTS[i], version)}/{bits}" for i in (side, 1 - side))
        for direction, source, target, i in (("out", here, there, side), ("fwd", there, here, 1 - side)):
            text += f"""src {source} dst {target}
	dir {direction} priority 1 ptype main
	tmpl src {OUTER[i]} dst {OUTER[1 - i]}
		proto esp reqid 1 mode tunnel
"""
        text += f"src {there} dst {here}\n\tdir out priority 2 ptype main\n"  # opened
    return text


def ipsec(net, side, out=""):
    """The functions that open and protect."""
    net.write("state", states())
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
        numbers = {spi: [] for spi in SPIS}
        for frame in frames_in(self.some):
            addresses = tuple(socket.inet_ntoa(frame[at:at + 4]) for at in (26, 30))
            check(frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_ESP and addresses in (OUTER, OUTER[::-1]),
                  "not ESP:", frame[:60].hex())
            if struct.unpack("!H", frame[20:22])[0] & 0x1FFF == 0:  # the first or only fragment
                spi, number = struct.unpack("!II", frame[34:42])
                check(addresses == (OUTER if spi == SPIS[0] else OUTER[::-1]), "wrong SA:", frame[:60].hex())
                numbers[spi].append(number)
        for seen in numbers.values():
            check(len(seen) > 100 and seen == sorted(set(seen)), "sequence numbers:", seen)
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


def exchange(net):
    for version in (4, 6):
        out = net.ping(version=version)
        check(" 0% packet loss" in out, out)
        net.iperf("", version)
        net.iperf("-R", version)


def check_opened(report, side):
    """The other gateway's packets have been opened, all of them, by the SA to this side."""
    check(spoilt(report, "lan") == 0 and spoilt(report, "wan") == 0, report["ports"])
    sas = report["functions"][0]["details"]["sas"]
    check(len(sas) == 1 and int(sas[0]["spi"], 16) == SPIS[1 - side] and sas[0]["packets"] > 1000, sas)
    check(sas[0]["integrity"] == 0 and sas[0]["replayed"] == 0, sas)


def between_routers(make):
    nets, middle = gateways(make, routed=True)
    for net, host in zip(nets, HOSTS):  # room for what the tunnel adds
        net.kind.set_mtu(net, host, 1400)
    for side, net in enumerate(nets):
        opens, protects = ipsec(net, side)
        net.start(opens + router(net, side) + protects)
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
    out = net.ping(options="-c 5 -i 0.02 -W 2 -s 1472 -M dont")
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
