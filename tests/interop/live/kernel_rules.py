# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A firewall with the rules of its kernel, which nft changes."""

import os
import re
import time

from control import Operator
from lifecycle import CAPABILITIES, as_nobody, thread_capabilities
from net import Skip, check, sh, wait_until

FIREWALL = "  - firewall: {rules: kernel, interfaces: {lan: lan, wan: wan}}\n"
NOT_IN_USE = "the kernel has rules that are not in use, since 20"


class Rules:
    """Of the gateway's kernel: pings pass, and of the two TCP ports 1001 and 1002 one."""

    def __init__(self, net):
        self.net = net
        if "nftables" not in sh("nft --version", check=False):
            raise Skip("nft is not installed")
        self.write(1001)

    def write(self, port, more=""):
        path = self.net.write("rules.nft", "flush ruleset\ntable inet gate {\n chain forward {\n"
                              f"  type filter hook forward priority 0; policy drop;\n  {more}\n  icmp type {{ 0, 8 }} accept\n"
                              f"  iifname lan tcp dport {port} accept\n }}\n}}\n")
        sh(f"ip netns exec gw nft -f {path}")

    def change(self, command):
        sh(f"ip netns exec gw nft {command}")


def passes(operator, port):
    net = operator.net
    answer = operator.do("explain", "tcp", f"{net.address('la')}:1", f"{net.address('lb')}:{port}", "--in", "lan")
    return answer["verdict"] == "forward"


def cautions(operator):
    return [caution["message"] for caution in operator.do("status")["cautions"]]


def details(operator):
    return operator.do("stats")["functions"][0]["details"]


def pings(details):
    return sum(rule["packets"] for rule in details["rules"] if "icmp" in rule["text"])


def follows(make):
    net = make(ipv6=False)
    rules, operator = Rules(net), Operator(net)
    net.start(FIREWALL, outputs=f", control: {operator.socket}, metrics: {{listen: '127.0.0.1:9474'}}")
    check(passes(operator, 1001) and not passes(operator, 1002))
    begun = time.monotonic()
    rules.write(1002)
    wait_until(lambda: passes(operator, 1002), "new rules are not in use", 5)
    print(f"in use after {time.monotonic() - begun:.2f} s")
    check(not passes(operator, 1001))

    # Each version passes pings.
    net.serve("la", f"ping -q -i 0.01 -c 150 {net.address('lb')}")
    reloads = operator.do("status")["reloads"]
    for version in range(10):
        rules.write(1001 + version % 2, more=f"udp dport {1 + version} accept")  # none is like another
        time.sleep(0.1)
    wait_until(lambda: not net.background[-1].is_running(), "the pings do not end")
    check(" 0% packet loss" in net.background[-1].text(), net.background[-1].text())
    wait_until(lambda: passes(operator, 1002) and not passes(operator, 1001), "the last rules are not in use", 5)
    made = operator.do("status")["reloads"] - reloads
    check(1 <= made <= 8, made, "reloads for 10 changes in 1 s")
    check(pings(details(operator)) == 300, "the counter of an unchanged rule goes on", details(operator))

    rules.write(1001, more="meta cpu 1 accept")
    wait_until(lambda: any(NOT_IN_USE in text for text in cautions(operator)), "nothing is said of refused rules", 5)
    check("meta cpu" in " ".join(cautions(operator)), cautions(operator))
    check(passes(operator, 1002) and not passes(operator, 1001), "refused rules change something")
    check(details(operator)["kernel"]["in_use"] is False, details(operator))
    metrics = net.host("gw", "curl -s http://127.0.0.1:9474/metrics")
    check('penstock_firewall_kernel_rules_in_use{function="firewall"} 0' in metrics, metrics)
    check(len(re.findall(f"error: kernel rules: {NOT_IN_USE}.*meta cpu", net.penstock.text())) == 1, net.penstock.text())
    status, _, text = operator.ask("reload", "--dry-run")
    check(status == 2 and "meta cpu" in text, status, text)
    check(" 0% packet loss" in net.ping())

    rules.write(1001)
    wait_until(lambda: passes(operator, 1001) and not passes(operator, 1002), "later rules are not in use", 5)
    # The reload ends when no packet uses the former rules.
    wait_until(lambda: cautions(operator) == [], "nothing is said of rules that are in use again", 5)
    check(details(operator)["kernel"]["in_use"] is True, details(operator))
    rules.change("flush ruleset")
    wait_until(lambda: "no chain that filters" in " ".join(cautions(operator)), "nothing is said of missing rules", 5)
    check(passes(operator, 1001) and not passes(operator, 1002), "missing rules open everything")
    rules.write(1001)
    wait_until(lambda: cautions(operator) == [], "the rules that are in use are not taken for those of the kernel", 5)
    operator.do("rollback")
    check(passes(operator, 1002) and "rolled back" in " ".join(cautions(operator)), cautions(operator))
    time.sleep(1)
    check(passes(operator, 1002), "a rollback does not last")
    check(operator.do("reload")["outcome"] == "in_use" and passes(operator, 1001) and cautions(operator) == [])
    rules.write(1001, more="udp dport 53 accept")
    wait_until(lambda: "rules of the kernel): in use" in net.penstock.text().split("rollback")[-1],
               "changes after a rollback are not followed", 5)
    net.stop()


def unprivileged(make):
    """As another user: only the thread that follows the rules keeps CAP_NET_ADMIN."""
    net = make(ipv6=False)
    rules, operator = Rules(net), Operator(net)
    without, with_admin = as_nobody(net, "net_raw"), as_nobody(net, "net_raw", "net_admin")
    net.start(FIREWALL, prefix=without, wait=False)
    check(net.penstock.process.wait(10) == 2, "it runs without the capability")
    text = net.penstock.text()
    check("cannot read the kernel's rules: expected the capability CAP_NET_ADMIN" in text and "setcap" in text, text)
    net.start(FIREWALL, prefix=with_admin, outputs=f", control: {operator.socket}")
    names = [name for name, sets in thread_capabilities(net) if sets["CapEff"] >> CAPABILITIES["net_admin"] & 1]
    check(names == ["kernel-rules"], names)
    rules.write(1002)
    wait_until(lambda: passes(operator, 1002), "new rules are not in use", 5)
    check(operator.do("reload")["outcome"] == "unchanged")
    net.stop()


def in_another_namespace(make):
    """Rules of a namespace in which nothing else filters. The run has lost the right to enter it."""
    net = make(ipv6=False)
    operator = Operator(net)
    Rules(net)
    sh("ip netns add rules && ip netns exec rules nft add table inet gate && ip netns exec rules nft "
       "add chain inet gate forward '{ type filter hook forward priority 0; policy drop; }'")
    net.start("  - firewall: {rules: kernel, netns: rules}\n", outputs=f", control: {operator.socket}")
    check(not passes(operator, 1001))
    sh("ip netns exec rules nft add rule inet gate forward tcp dport 1001 accept")
    wait_until(lambda: passes(operator, 1001), "new rules are not in use", 5)
    net.stop()


SCENARIOS = {
    "KernelRules": follows,
    "KernelRulesUnprivileged": unprivileged,
    "KernelRulesElsewhere": in_another_namespace,
}
