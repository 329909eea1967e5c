import classbench

classbench.make(__file__, version=6, rule_count=120, packet_count=400, matched=None, policy="firewall.rejected")
