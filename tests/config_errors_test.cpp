// Bad policies, each with the exact line that a user sees. The texts are short; those that are about a class begin with
// one sound link, so that the class stands on line 5.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shaper/model/config.h"

namespace shaper {
namespace {

struct BadPolicy {
  std::string sentence;
  std::string text;
  std::string error;  ///< "line:column: message"
};

std::string error_of(const std::string& text) {
  const NameLookup names{[](const std::string& name) -> std::optional<std::uint32_t> {
                           if (name == "backup") return 34;
                           return std::nullopt;
                         },
                         {}};
  const auto policy = parse_policy(text, "policy.toml", names);
  return policy ? "accepted" : policy.error().text();
}

void expect_errors(const std::vector<BadPolicy>& table, const std::string& before) {
  for (const BadPolicy& bad : table) {
    EXPECT_EQ(error_of(before + bad.text), "policy.toml:" + bad.error) << bad.sentence << "\n" << before << bad.text;
  }
}

const std::string kVersion = "version = 1\n";
const std::string kLink = kVersion + "[[link]]\nname = \"up\"\ninterface = \"eth0\"\n";
const std::string kClass = kLink + "[[class]]\nname = \"web\"\nlink = \"up\"\n";

TEST(BadPolicies, AsText) {
  expect_errors(
      {
          {"an empty file", "", "1:1: this policy is empty: it begins with version = 1 and has a [[link]]"},
          {"only comments", "# nothing\n\n",
           "1:1: this policy is empty: it begins with version = 1 and has a [[link]]"},
          {"a file that is not UTF-8", "version = 1\nx = \"\xff\"\n", "2:6: this is not UTF-8 text"},
          {"an overlong UTF-8 slash", "version = 1 # \xc3\xa9\xc0\xaf\n", "1:16: this is not UTF-8 text"},
          {"the wrong file: nothing of it is shown", "root:$6$secret:19000:0:99999:7:::\n",
           "1:5: not valid TOML: key-value pair: expected \"=\""},
          {"a private key: nothing of it is shown", "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n",
           "1:12: not valid TOML: key-value pair: expected \"=\""},
          {"a rate without quotation marks", kVersion + "rate = 20mbit\n",
           "2:8: this is no TOML value: texts stand in quotation marks, as in rate = \"20mbit\""},
          {"a text that does not end", kVersion + "name = \"up\n",
           "2:11: not valid TOML: string: unescaped control characters other than TAB (U+0009) are explicitly "
           "prohibited"},
          {"a key without a value", kVersion + "max_flows\n", "2:10: not valid TOML: key-value pair: expected \"=\""},
          {"a number that no machine holds", kVersion + "max_flows = 99999999999999999999\n",
           "2:33: not valid TOML: decimal integer: this is not representable in 64 bits"},
          {"a duplicate key at the top", "version = 1\nmax_flows = 5\nversion = 1\n", "3:1: duplicate key \"version\""},
          {"a duplicate key in a link", kLink + "  name   = \"down\"\n", "5:3: duplicate key \"name\""},
          {"a duplicate key in an inline table", kClass + "each = { by = \"flow\", rate = \"1mbit\", by = \"flow\" }\n",
           "8:39: duplicate key \"by\""},
          {"a link in single brackets twice", kVersion + "[link]\nname = \"a\"\n[link]\nname = \"b\"\n",
           "4:1: duplicate table \"link\": a list of tables stands in double brackets"},
          {"single and double brackets", kVersion + "[[link]]\nname = \"a\"\n[link]\nname = \"b\"\n",
           "4:1: \"link\" is written in single and in double brackets"},
          {"a key of a hundred thousand parts",
           [] {
             std::string key = "a";
             for (int i = 0; i < 100'000; ++i) key += ".a";
             return key + " = 1\n";
           }(),
           "1:66: too many dots: no key is nested that deep"},
          {"a letter of another alphabet as a key: undefined behaviour in toml++ 3.3", "\xef\xbb\xb7 = 1\n",
           "1:1: a character like this stands in quotation marks or in a comment only"},
          {"a table header that toml++ 3.3 fails an assertion on", "[=link]\n",
           "1:2: not valid TOML: a key or a value should begin here"},
          {"a blank between brackets", "[ [link]]\n",
           "1:3: not valid TOML: table header: [[array-of-table]] brackets must be contiguous (i.e. [ [ this ] ] is "
           "prohibited)"},
          {"a table header that ends at once", "version = 1\n[[",
           "2:3: not valid TOML: table header: encountered end-of-file"},
          {"a table header behind a list of lists", "a = [\n  [1],\n  [2] ]\n[!x]\n",
           "4:2: not valid TOML: a key or a value should begin here"},
          {"a list that a brace closes, behind a letter of two bytes", "# \xc3\xa9\na = [ }\n# \xc3\xa9\n",
           "2:7: not valid TOML: a key or a value should begin here"},
          {"an error behind a byte order mark", "\xef\xbb\xbfversion = 2\n",
           "1:11: this version of policies is not known: write version = 1"},
          {"lists in lists in lists", "a = " + std::string(100'000, '[') + "\n",
           "1:21: not valid TOML: value: exceeded maximum nested value depth of 16"},
          {"a file above one mebibyte", std::string((1 << 20) + 1, '#'), "1:1: this file is larger than 1 MiB"},
      },
      "");
}

TEST(BadPolicies, AtTheTop) {
  expect_errors(
      {
          {"no version", "[[link]]\nname = \"up\"\ninterface = \"eth0\"\n",
           "1:1: \"version\" is missing: a policy begins with version = 1"},
          {"a version of the future", "version = 2\n",
           "1:11: this version of policies is not known: write version = 1"},
          {"a version as text", "version = \"1\"\n", "1:11: this version of policies is not known: write version = 1"},
          {"no link", "version = 1\n", "1:1: a policy needs at least one [[link]]"},
          {"an unknown key", "version = 1\nmax_flow = 5\n",
           "2:1: unknown key \"max_flow\": the nearest is \"max_flows\""},
          {"an unknown key that nobody should print", "version = 1\n\"\\u001b]0;x\" = 5\n",
           "2:1: unknown key: the nearest is \"link\""},
          {"a key of a class", "version = 1\nceil = \"5mbit\"\n",
           "2:1: \"ceil\" is a key of a class, not of the top of the file"},
          {"a link that is no list", "version = 1\n[link]\nname = \"up\"\n",
           "2:2: \"link\" is a list of tables: write [[link]]"},
          {"links that are no tables", "version = 1\nlink = [1]\n", "2:9: \"link\" is a list of tables"},
          {"a table without room for a flow", "version = 1\nmax_flows = 0\n",
           "2:13: \"max_flows\" must be a whole number from 1 to 16777216"},
          {"a negative table of flows", "version = 1\nmax_flows = -1\n",
           "2:13: \"max_flows\" must be a whole number from 1 to 16777216"},
          {"a named limit", "version = 1\n[[limit]]\nname = \"tenant\"\n", "2:3: \"limit\" is not in this version"},
          {"a cluster", "version = 1\n[cluster]\nredis = \"127.0.0.1\"\n", "2:2: \"cluster\" is not in this version"},
          {"two threads", "version = 1\nthreads = 2\n", "2:11: threads = 2 is not in this version"},
          {"real time", "version = 1\nrealtime = true\n", "2:12: realtime = true is not in this version"},
          {"repair", "version = 1\nrepair = true\n", "2:10: repair = true is not in this version"},
          {"a group of operators", "version = 1\noperators = \"netops\"\n",
           "2:1: \"operators\" is not in this version"},
          {"of two errors the first in the file, not in the alphabet", "zebra = 1\nversion = 1\napple = 1\n",
           "1:1: unknown key \"zebra\": the nearest is \"link\""},
      },
      "");
}

TEST(BadPolicies, InALink) {
  expect_errors(
      {
          {"no interface", "[[link]]\nname = \"up\"\n", "2:1: a link needs \"interface\""},
          {"no name", "[[link]]\ninterface = \"eth0\"\n", "2:1: a link needs \"name\""},
          {"a name with a quotation mark", "[[link]]\nname = 'u\"p'\ninterface = \"eth0\"\n",
           "3:8: a name has 1 to 32 letters, digits, dots, underscores and hyphens"},
          {"a name with an escape", "[[link]]\nname = \"\\u001b]0;x\"\ninterface = \"eth0\"\n",
           "3:8: a name has 1 to 32 letters, digits, dots, underscores and hyphens"},
          {"an interface with a slash", "[[link]]\nname = \"up\"\ninterface = \"../eth0\"\n",
           "4:13: an interface name has 1 to 15 letters, digits, dots, underscores, hyphens and @"},
          {"an interface of 16 letters", "[[link]]\nname = \"up\"\ninterface = \"abcdefghijklmnop\"\n",
           "4:13: an interface name has 1 to 15 letters, digits, dots, underscores, hyphens and @"},
          {"a wildcard of iptables", "[[link]]\nname = \"up\"\ninterface = \"eth+\"\n",
           "4:13: an interface name has 1 to 15 letters, digits, dots, underscores, hyphens and @"},
          {"two links of one name", kLink.substr(12) + "[[link]]\nname = \"up\"\ninterface = \"eth1\"\n",
           "6:8: another link has this name already"},
          {"two links on one interface", kLink.substr(12) + "[[link]]\nname = \"x\"\ninterface = \"eth0\"\n",
           "7:13: another link has this interface already"},
          {"a link rate", kLink.substr(12) + "rate = \"100mbit\"\n", "5:1: \"rate\" of a link is not in this version"},
          {"the way in", kLink.substr(12) + "direction = \"ingress\"\n",
           "5:13: direction = \"ingress\" is not in this version"},
          {"a misspelt direction", kLink.substr(12) + "direction = \"outgoing\"\n",
           "5:13: unknown value of \"direction\": the nearest is \"egress\""},
          {"a guard", kLink.substr(12) + "guard = true\n", "5:9: guard = true is not in this version"},
          {"a word of tc-cake", kLink.substr(12) + "overhead = \"pppoe-ptm\"\n",
           "5:12: overhead = \"pppoe-ptm\" is not in this version"},
          {"a misspelt overhead", kLink.substr(12) + "overhead = \"ethrenet\"\n",
           "5:12: unknown value of \"overhead\": the nearest is \"ethernet\""},
          {"a negative overhead", kLink.substr(12) + "overhead = -4\n",
           "5:12: \"overhead\" must be a whole number from 0 to 256"},
          {"a fraction of a byte", kLink.substr(12) + "mpu = 64.5\n",
           "5:7: \"mpu\" must be a whole number from 0 to 256"},
          {"a key of a match", kLink.substr(12) + "remote = \"10.0.0.1\"\n",
           "5:1: \"remote\" is a key of match, not of a link"},
      },
      kVersion);
}

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
          {"all that is free", "ceil = \"link\"\n", "8:8: ceil = \"link\" is not in this version"},
          {"an unknown key", "prioritty = 3\n", "8:1: unknown key \"prioritty\": the nearest is \"priority\""},
          {"a priority", "priority = 3\n", "8:1: \"priority\" of a class is not in this version"},
          {"named limits", "limits = [\"tenant\"]\n", "8:1: \"limits\" of a class is not in this version"},
          {"a leaky bucket", "discipline = \"leaky\"\n", "8:14: discipline = \"leaky\" is not in this version"},
          {"fair between hosts", "fair = \"host\"\n", "8:8: fair = \"host\" is not in this version"},
          {"CoDel", "aqm = true\n", "8:7: aqm = true is not in this version"},
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
          {"each by user", "each = { by = \"user\", rate = \"2mbit\" }\n",
           "8:15: by = \"user\" is not in this version"},
          {"each by one prefix length", "each = { by = \"source/24\", rate = \"2mbit\" }\n",
           "8:15: an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\""},
          {"each by a prefix of zero bits", "each = { by = \"source/0,64\", rate = \"2mbit\" }\n",
           "8:15: an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\""},
          {"each flow with a prefix", "each = { by = \"flow/24,64\", rate = \"2mbit\" }\n",
           "8:15: an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\""},
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
          {"a list of links", "[[class]]\nname = \"web\"\nlink = [\"up\"]\n",
           "7:8: a list of links is not in this version: name one link"},
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

TEST(BadPolicies, InAMatch) {
  expect_errors(
      {
          {"no table", "match = \"tcp\"\n",
           "8:9: \"match\" must be a table such as { protocol = \"tcp\" }, or a list of tables"},
          {"an empty list", "match = []\n", "8:9: \"match\" is an empty list: leave it out to match all"},
          {"an empty table", "match = {}\n", "8:9: an empty table matches everything: leave it out"},
          {"an unknown key", "match = { port = 80 }\n", "8:11: unknown key \"port\": the nearest is \"source_port\""},
          {"a key of later", "match = { cgroup = \"/system.slice\" }\n",
           "8:11: \"cgroup\" of match is not in this version"},
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

}  // namespace
}  // namespace shaper
