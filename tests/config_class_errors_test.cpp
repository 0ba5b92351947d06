// Bad policies: classes, limits and matches. Most texts begin with one sound link, so that the class stands on line 5.
#include <fmt/format.h>

#include "tests/bad_policies.h"

namespace shaper {
namespace {

TEST(BadPolicies, InAClass) {
  expect_errors(
      {
          {"a number without a unit", "rate = 30\n",
           "8:8: \"30\" has no unit: write \"30bit\" (30 bit/s) or \"30B/s\" (240 bit/s)"},
          {"a text without a unit", "rate = \"30\"\n",
           "8:8: \"30\" has no unit: write \"30bit\" (30 bit/s) or \"30B/s\" (240 bit/s)"},
          {"a bare M", "rate = \"30M\"\n",
           "8:8: \"30M\" is ambiguous: write \"30mbit\" (30000000 bit/s) or \"30MB/s\" (240000000 bit/s)"},
          {"megabits or megabytes", "rate = \"30mbps\"\n",
           "8:8: \"30mbps\" is ambiguous: write \"30mbit\" (30000000 bit/s) or \"30MB/s\" (240000000 bit/s)"},
          {"a password in the wrong place: not repeated", "rate = \"hunter2\"\n",
           "8:8: this value is not a number with a unit such as \"20mbit\""},
          {"a fraction without a unit", "rate = 1.5\n", "8:8: \"rate\" must be a text such as \"20mbit\""},
          {"a rate of zero", "rate = \"0mbit\"\n", "8:8: \"0mbit\" is zero"},
          {"a negative rate", "rate = \"-1mbit\"\n", "8:8: \"-1mbit\" is negative"},
          {"a rate above the ceil", "rate = \"20mbit\"\nceil = \"10mbit\"\n",
           "8:8: the rate, 20 Mbit/s, is above the ceil, 10 Mbit/s"},
          {"an unknown key", "prioritty = 3\n", "8:1: unknown key \"prioritty\": the nearest is \"priority\""},
          {"a priority beyond the last", "priority = 8\n", "8:12: \"priority\" must be a whole number from 0 to 7"},
          {"a priority before the first", "priority = -1\n", "8:12: \"priority\" must be a whole number from 0 to 7"},
          {"a limit where there is none", "limits = [\"tenant\"]\n",
           "8:11: no limit has this name: there is no [[limit]]"},
          {"no limits", "limits = []\n", "8:10: \"limits\" is an empty list"},
          {"a limit as a number", "limits = [5]\n",
           "8:11: \"limits\" must be a text in quotation marks, or a list of them"},
          {"a limit twice", "limits = [\"tenant\", \"tenant\"]\n[[limit]]\nname = \"tenant\"\nrate = \"1mbit\"\n",
           "8:21: \"limits\" names \"tenant\" twice"},
          {"a misspelt limit", "limits = \"tennant\"\n[[limit]]\nname = \"tenant\"\nrate = \"1mbit\"\n",
           "8:10: no limit has this name: the nearest is \"tenant\""},
          {"an unknown fairness", "fair = \"hosts\"\n", "8:8: unknown value of \"fair\": the nearest is \"host\""},
          {"CoDel by name", "aqm = \"codel\"\n", "8:7: \"aqm\" must be true or false"},
          {"a leaky bucket without a rate", "discipline = \"leaky\"\n",
           "8:14: a leaky class spaces its packets at a rate: it needs a \"rate\" or a \"ceil\" of its own"},
          {"a leaky bucket with the rate of the link", "ceil = \"link\"\nrate = \"1mbit\"\ndiscipline = \"leaky\"\n",
           "10:14: a leaky class spaces its packets at a rate: it needs a \"rate\" or a \"ceil\" of its own"},
          {"a leaky bucket with a burst", "rate = \"1mbit\"\ndiscipline = \"leaky\"\nburst = \"4ms\"\n",
           "10:9: a leaky class has no burst: its packets leave evenly spaced"},
          {"a leaky policer", "rate = \"1mbit\"\nover = \"drop\"\ndiscipline = \"leaky\"\n",
           "9:8: a leaky class spaces packets by holding them: over = \"delay\" is the only way for it"},
          {"a leaky meter", "rate = \"1mbit\"\nover = \"count\"\ndiscipline = \"leaky\"\n",
           "9:8: a leaky class spaces packets by holding them: over = \"delay\" is the only way for it"},
          {"one bound under two names",
           "rate = \"1mbit\"\ndiscipline = \"leaky\"\ncapacity = \"8kB\"\nbacklog = \"8kB\"\n",
           "10:12: \"capacity\" and \"backlog\" say the same: write one of them"},
          {"a capacity of a token bucket", "rate = \"1mbit\"\ncapacity = \"8kB\"\n",
           "9:1: \"capacity\" is of discipline = \"leaky\": what may wait elsewhere is \"backlog\""},
          {"a key of a limit", "scope = \"host\"\n", "8:1: \"scope\" is a key of a limit, not of a class"},
          {"marks as text", "ecn = \"false\"\n", "8:7: \"ecn\" must be true or false"},
          {"an unknown way with what is over", "over = \"police\"\n",
           "8:8: unknown value of \"over\": the nearest is \"delay\""},
          {"a burst without a unit", "rate = \"1mbit\"\nburst = 3000\n",
           "9:9: \"3000\" has no unit: write \"3000ms\" or \"3000B\""},
          {"a burst of kilo-somethings", "rate = \"1mbit\"\nburst = \"8KB\"\n",
           "9:9: \"8KB\" is ambiguous: write \"8kB\" (8000 bytes) or \"8KiB\" (8192 bytes)"},
          {"a burst that no bucket holds", "rate = \"400gbit\"\nburst = \"1s\"\n",
           "9:9: a burst of 50 GB is larger than a bucket may hold, 1023 MiB"},
          {"a delay of zero", "max_delay = \"0ms\"\n", "8:13: \"0ms\" is zero"},
          {"a delay of days", "max_delay = \"48h\"\n", "8:13: \"max_delay\" may be 1 h at most"},
          {"a backlog in packets", "backlog = 1000\n",
           "8:11: \"1000\" has no unit: write \"1000B\" (1000 bytes) or \"1000kB\" (1000000 bytes)"},
          {"each without a rate", "each = { by = \"flow\" }\n", "8:8: each needs \"rate\""},
          {"each as a rate", "each = \"2mbit\"\n",
           "8:8: \"each\" must be a table such as { by = \"flow\", rate = \"2mbit\" }"},
          {"each by an unknown key", "each = { by = \"sorce\", rate = \"2mbit\" }\n",
           "8:15: unknown value of \"by\": the nearest is \"source\""},
          {"each by a misspelt owner", "each = { by = \"proces\", rate = \"2mbit\" }\n",
           "8:15: unknown value of \"by\": the nearest is \"process\""},
          {"each user with a prefix", "each = { by = \"user/24,64\", rate = \"2mbit\" }\n",
           "8:15: only an address in \"by\" has prefix lengths"},
          {"each by one prefix length", "each = { by = \"source/24\", rate = \"2mbit\" }\n",
           "8:15: an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\""},
          {"each by a prefix of zero bits", "each = { by = \"source/0,64\", rate = \"2mbit\" }\n",
           "8:15: an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\""},
          {"each flow with a prefix", "each = { by = \"flow/24,64\", rate = \"2mbit\" }\n",
           "8:15: only an address in \"by\" has prefix lengths"},
          {"a ceil inside each", "each = { by = \"flow\", rate = \"2mbit\", ceil = \"3mbit\" }\n",
           "8:39: \"ceil\" is a key of a class, not of each"},
          {"a default with a match", "default = true\nmatch = { protocol = \"tcp\" }\n",
           "9:1: the default class takes what matches nothing: it has no \"match\""},
      },
      kClass);
}

TEST(BadPolicies, AmongClasses) {
  const std::string second = "[[class]]\nlink = \"up\"\n";
  expect_errors(
      {
          {"no name", "[[class]]\nlink = \"up\"\n", "5:1: a class needs \"name\""},
          {"no link", "[[class]]\nname = \"web\"\n", "5:1: a class needs \"link\""},
          {"an unknown link", "[[class]]\nname = \"web\"\nlink = \"uo\"\n",
           "7:8: no link has this name: the nearest is \"up\""},
          {"a link twice", "[[class]]\nname = \"web\"\nlink = [\"up\", \"up\"]\n", "7:15: \"link\" names \"up\" twice"},
          {"a list with an unknown link", "[[class]]\nname = \"web\"\nlink = [\"up\", \"dwn\"]\n",
           "7:15: no link has this name: the nearest is \"up\""},
          {"a list of no links", "[[class]]\nname = \"web\"\nlink = []\n", "7:8: \"link\" is an empty list"},
          {"a link as a number", "[[class]]\nname = \"web\"\nlink = 1\n",
           "7:8: \"link\" must be a text in quotation marks, or a list of them"},
          {"a name with markup", "[[class]]\nname = \"<script>\"\nlink = \"up\"\n",
           "6:8: a name has 1 to 32 letters, digits, dots, underscores and hyphens"},
          {"equal names",
           kClass.substr(kLink.size()) + "match = { protocol = \"tcp\" }\n" + second + "name = \"web\"\n",
           "11:8: another class of this link has this name already"},
          {"two defaults",
           kClass.substr(kLink.size()) + "default = true\n" + second + "name = \"rest\"\ndefault = true\n",
           "12:11: this link has a default class already"},
          {"the default's name for another class", second + "name = \"default\"\nmatch = { protocol = \"tcp\" }\n",
           "5:1: the name \"default\" is for what matches nothing: add default = true, or choose another name"},
          {"a class behind one that takes everything", kClass.substr(kLink.size()) + second + "name = \"late\"\n",
           "8:1: class \"late\" can never match: class \"web\" takes all of its packets first"},
          {"the guard's name where there is a guard", second + "name = \"guard\"\nmatch = { protocol = \"tcp\" }\n",
           "5:1: the name \"guard\" is for the share of the operator's SSH: choose another name, or switch it off by "
           "guard = false in the link"},
          {"a default behind one that takes everything",
           second + "name = \"rest\"\ndefault = true\n" + kClass.substr(kLink.size()),
           "5:1: class \"rest\" can never match: class \"web\" takes all of its packets first"},
          {"a port of a protocol that is taken",
           kClass.substr(kLink.size()) + "match = { protocol = [\"tcp\", \"udp\"] }\n" + second +
               "name = \"late\"\nmatch = { protocol = \"tcp\", remote_port = 80 }\n",
           "9:1: class \"late\" can never match: class \"web\" takes all of its packets first"},
          {"a prefix inside a prefix, under another name",
           kClass.substr(kLink.size()) + "match = { local = \"10.0.0.0/8\", remote_port = \"1-99\" }\n" + second +
               "name = \"late\"\nmatch = { source = \"10.1.0.0/16\", destination_port = [80, \"22-25\"] }\n",
           "9:1: class \"late\" can never match: class \"web\" takes all of its packets first"},
          {"what is excluded twice",
           kClass.substr(kLink.size()) + "match = { protocol = \"tcp\", not = { remote_port = 22 } }\n" + second +
               "name = \"late\"\nmatch = { protocol = \"tcp\", not = { remote_port = \"20-30\" } }\n",
           "9:1: class \"late\" can never match: class \"web\" takes all of its packets first"},
      },
      kLink);
}

TEST(BadPolicies, AmongClassesOfSeveralLinks) {
  const std::string both =
      "[[link]]\nname = \"down\"\ninterface = \"eth0\"\ndirection = \"ingress\"\n[[class]]\nname = "
      "\"web\"\nlink = [\"up\", \"down\"]\n";
  const std::string late = "[[class]]\nname = \"late\"\n";
  expect_errors(
      {
          {"a name that one of the links has", "[[class]]\nname = \"web\"\nlink = \"down\"\n",
           "14:8: another class of this link has this name already"},
          {"a class that is covered everywhere", late + "link = [\"up\", \"down\"]\nmatch = { local = \"10.0.0.7\" }\n",
           "13:1: class \"late\" can never match on link \"up\": class \"web\" takes all of its packets first"},
          {"a class that is covered on the way in only",
           late + "link = [\"up\", \"down\"]\nmatch = { destination = \"10.0.0.7\" }\n",
           "13:1: class \"late\" can never match on link \"down\": class \"web\" takes all of its packets first"},
      },
      kLink + both + "match = { local = \"10.0.0.0/8\" }\n");
  std::string many = kVersion;
  std::string names;
  for (int i = 0; i < 65; ++i) {
    const std::string name = "l" + std::to_string(i);
    many += "[[link]]\nname = \"" + name + "\"\ninterface = \"" + name + "\"\n";
    names += "\"" + name + "\", ";
  }
  for (int i = 0; i < 253; ++i) {
    many += "[[class]]\nname = \"c" + std::to_string(i) + "\"\nmatch = { mark = " + std::to_string(i) + " }\nlink = [" +
            names + "]\n";
  }
  expect_errors({{"too many classes, counted for each link", "",
                  "1205:1: a policy has at most 16384 classes: one on several links counts for each"}},
                many);
}

TEST(BadPolicies, InALimit) {
  expect_errors(
      {
          {"no rate", "name = \"tenant\"\n", "5:1: a limit needs \"rate\""},
          {"no name", "rate = \"1mbit\"\n", "5:1: a limit needs \"name\""},
          {"a name with a blank", "name = \"tenant a\"\nrate = \"1mbit\"\n",
           "6:8: a name has 1 to 32 letters, digits, dots, underscores and hyphens"},
          {"two limits of one name", "name = \"x\"\nrate = \"1mbit\"\n[[limit]]\nname = \"x\"\nrate = \"1mbit\"\n",
           "9:8: another limit has this name already"},
          {"by process over several hosts",
           "name = \"x\"\nrate = \"1mbit\"\nby = \"process\"\nscope = \"cluster\"\n[cluster]\nredis = \"/r\"\n",
           "8:6: buckets of a cgroup, process or container have no name that holds on all hosts: with scope = "
           "\"cluster\" an owner is a \"user\""},
          {"by cgroup over several hosts",
           "name = \"x\"\nrate = \"1mbit\"\nscope = \"cluster\"\nby = \"cgroup\"\n[cluster]\nredis = \"/r\"\n",
           "9:6: buckets of a cgroup, process or container have no name that holds on all hosts: with scope = "
           "\"cluster\" an owner is a \"user\""},
          {"by container over several hosts",
           "name = \"x\"\nrate = \"1mbit\"\nscope = \"cluster\"\nby = \"container\"\n[cluster]\nredis = \"/r\"\n",
           "9:6: buckets of a cgroup, process or container have no name that holds on all hosts: with scope = "
           "\"cluster\" an owner is a \"user\""},
          {"by a misspelt key", "name = \"x\"\nrate = \"1mbit\"\nby = \"remoot/24,64\"\n",
           "8:6: unknown value of \"by\": the nearest is \"remote\""},
          {"by one prefix length", "name = \"x\"\nrate = \"1mbit\"\nby = \"source/24\"\n",
           "8:6: an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\""},
          {"a leaky limit with a burst", "name = \"x\"\nrate = \"1mbit\"\ndiscipline = \"leaky\"\nburst = \"4ms\"\n",
           "9:9: a leaky limit has no burst: it lets packets through evenly spaced"},
          {"a leaky limit with a capacity",
           "name = \"x\"\nrate = \"1mbit\"\ndiscipline = \"leaky\"\ncapacity = \"4kB\"\n",
           "9:1: \"capacity\" is a key of a class, not of a limit"},
          {"a burst that no bucket holds", "name = \"x\"\nrate = \"400gbit\"\nburst = \"1s\"\n",
           "8:9: a burst of 50 GB is larger than a bucket may hold, 1023 MiB"},
          {"over all hosts", "name = \"x\"\nrate = \"1mbit\"\nscope = \"cluster\"\n",
           "8:9: such a limit needs [cluster] with the address of its Redis"},
          {"without Redis, on this host", "name = \"x\"\nrate = \"1mbit\"\nwithout_redis = \"allow\"\n",
           "8:17: only a limit with scope = \"cluster\" has this key"},
          {"a reserve on this host", "name = \"x\"\nrate = \"1mbit\"\nreserve = true\n",
           "8:11: only a limit with scope = \"cluster\" has this key"},
          {"a strategy on this host", "name = \"x\"\nrate = \"1mbit\"\nstrategy = \"poll\"\n",
           "8:12: only a limit with scope = \"cluster\" has this key"},
          {"a strategy that is observed",
           "name = \"x\"\nrate = \"1mbit\"\nscope = \"cluster\"\nstrategy = \"poll\"\nobserve = true\n"
           "[cluster]\nredis = \"/r\"\n",
           "10:11: what is observed is what \"grants\" would do: leave \"strategy\" out"},
          {"without Redis by a word of its own",
           "name = \"x\"\nrate = \"1mbit\"\nscope = \"cluster\"\nwithout_redis = \"local\"\n[cluster]\nredis = "
           "\"/r\"\n",
           "9:17: unknown value of \"without_redis\": the nearest is \"allow\""},
      },
      kLink + "[[limit]]\n");
  std::string many = kClass + "limits = [\"l0\"";
  std::string tables;
  for (int i = 0; i <= 64; ++i) {
    if (i > 0) many += ", \"l" + std::to_string(i) + "\"";
    tables += "[[limit]]\nname = \"l" + std::to_string(i) + "\"\nrate = \"1mbit\"\n";
  }
  EXPECT_EQ(error_of(many + "]\n" + tables), "policy.toml:8:10: a class has at most 64 limits");
  EXPECT_EQ(error_of(kLink + "[limit]\nname = \"x\"\n"),
            "policy.toml:5:2: \"limit\" is a list of tables: write [[limit]]");
}

TEST(BadPolicies, InAMatch) {
  expect_errors(
      {
          {"no table", "match = \"tcp\"\n",
           "8:9: \"match\" must be a table such as { protocol = \"tcp\" }, or a list of tables"},
          {"an empty list", "match = []\n", "8:9: \"match\" is an empty list: leave it out to match all"},
          {"an empty table", "match = {}\n", "8:9: an empty table matches everything: leave it out"},
          {"an unknown key", "match = { port = 80 }\n", "8:11: unknown key \"port\": the nearest is \"source_port\""},
          {"a misspelt key", "match = { contaner = \"web\" }\n",
           "8:11: unknown key \"contaner\": the nearest is \"container\""},
          {"a key of a class", "match = { rate = \"5mbit\" }\n", "8:11: \"rate\" is a key of a class, not of match"},
          {"an unknown protocol", "match = { protocol = \"tpc\" }\n",
           "8:22: unknown protocol: the nearest name is \"tcp\""},
          {"protocol 300", "match = { protocol = 300 }\n", "8:22: a protocol is a name or a number from 0 to 255"},
          {"no values", "match = { protocol = [] }\n", "8:22: \"protocol\" is an empty list"},
          {"a value of no kind", "match = { protocol = [ \"tcp\", true ] }\n",
           "8:31: \"protocol\" takes texts and whole numbers, or a list of them"},
          {"half an address", "match = { remote = \"10.0.0\" }\n",
           "8:20: \"remote\" must be an address or a prefix such as \"203.0.113.0/24\""},
          {"a host name", "match = { remote = \"example.org\" }\n",
           "8:20: \"remote\" must be an address or a prefix such as \"203.0.113.0/24\""},
          {"33 bits of IPv4", "match = { remote = \"10.0.0.0/33\" }\n",
           "8:20: \"remote\" must be an address or a prefix such as \"203.0.113.0/24\""},
          {"an address where a prefix was meant", "match = { remote = \"10.0.0.1/24\" }\n",
           "8:20: the address has bits beyond its prefix: write \"10.0.0.0/24\" or \"10.0.0.1\""},
          {"IPv4 to IPv6", "match = { source = \"10.0.0.1\", destination = \"2001:db8::/32\" }\n",
           "8:9: no packet can match: one address is IPv4 and the other IPv6"},
          {"port zero", "match = { remote_port = 0 }\n",
           "8:25: \"remote_port\" must be a port from 1 to 65535 or a range such as \"8000-8010\""},
          {"port 65536", "match = { remote_port = 65536 }\n",
           "8:25: \"remote_port\" must be a port from 1 to 65535 or a range such as \"8000-8010\""},
          {"a service name", "match = { remote_port = \"https\" }\n",
           "8:25: \"remote_port\" must be a port from 1 to 65535 or a range such as \"8000-8010\""},
          {"a range backwards", "match = { remote_port = \"90-80\" }\n",
           "8:25: this range of ports ends before it begins"},
          {"a port of ICMP", "match = { protocol = \"icmp\", remote_port = 80 }\n", "8:30: protocol icmp has no ports"},
          {"an unknown DSCP", "match = { dscp = \"AF51\" }\n", "8:18: unknown DSCP: the nearest name is \"AF11\""},
          {"a mark beyond its mask", "match = { mark = \"0x100/0xff\" }\n",
           "8:18: no mark can match: the value has bits outside its mask"},
          {"the shaper's own bit of the mark", "match = { mark = \"0x8000010/0x80000ff\" }\n",
           "8:18: no mark can match: its bit 0x8000000 is the shaper's own; leave it out, or give the shaper another "
           "by "
           "\"mark_mask\""},
          {"the same in a list inside of not", "match = { not = { mark = [1, \"0x8000000\"] } }\n",
           "8:30: no mark can match: its bit 0x8000000 is the shaper's own; leave it out, or give the shaper another "
           "by "
           "\"mark_mask\""},
          {"a mask of zero", "match = { mark = \"0/0\" }\n", "8:18: a mask of zero matches every mark"},
          {"a mark as a word", "match = { mark = \"red\" }\n",
           "8:18: \"mark\" must be a value, or a value and a mask such as \"0x10/0xff\""},
          {"an unknown user", "match = { user = [\"backup\", \"bakcup\"] }\n",
           "8:29: this user is not known on this host"},
          {"a range of users backwards", "match = { user = \"59999-1000\" }\n",
           "8:18: \"user\" must be a name, a number or a range such as \"1000-59999\""},
          {"the user that is nobody at all", "match = { user = 4294967295 }\n",
           "8:18: \"user\" must be a name, a number or a range such as \"1000-59999\""},
          {"a group where none can be looked up", "match = { group = \"wheel\" }\n",
           "8:19: this group is not known on this host"},
          {"an error inside not", "match = [ { protocol = \"tcp\" },\n  { not = { dscp = 64 } } ]\n",
           "9:20: a DSCP is a name or a number from 0 to 63"},
      },
      kClass);
}

TEST(BadPolicies, OneOfManyClassesCanNeverMatch) {
  std::string text = kLink;
  for (int n = 0; n < 4'000; ++n) {
    text += fmt::format("[[class]]\nname = \"c{}\"\nlink = \"up\"\nmatch = {{ remote = \"10.0.0.0/8\", user = {} }}\n",
                        n, n == 3'999 ? 7 : n);
  }
  const auto policy = parse_policy(text, "p");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().text(),
            "p:16001:1: class \"c3999\" can never match: class \"c7\" takes all of its packets first");
}

}  // namespace
}  // namespace shaper
