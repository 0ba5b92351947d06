// Bad policies: the text as such, the top of the file, links. Those of classes and limits:
// config_class_errors_test.cpp.
#include "tests/bad_policies.h"

namespace shaper {
namespace {

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
          {"a cluster without a server", "version = 1\n[cluster]\n", "2:1: [cluster] needs \"redis\""},
          {"a server without a port", "version = 1\n[cluster]\nredis = \"127.0.0.1\"\n",
           "3:9: a Redis is \"redis://HOST:PORT\", \"redis://[ADDRESS]:PORT\" or \"unix:///PATH\""},
          {"a server by TLS", "version = 1\n[cluster]\nredis = \"rediss://a:6379\"\n",
           "3:9: TLS is not spoken here: name a unix socket or redis://, with a tunnel (stunnel) that speaks it"},
          {"several servers", "version = 1\n[cluster]\nredis = [\"redis://a:1\", \"redis://b:1\"]\n",
           "3:9: redis = \"several servers\" is not in this version"},
          {"an interval that starves hosts", "version = 1\n[cluster]\nredis = \"redis://a:6379\"\ninterval = \"1s\"\n",
           "4:12: \"interval\" must be between 10ms and 500ms"},
          {"a host with spaces", "version = 1\n[cluster]\nredis = \"redis://a:6379\"\nhost = \"a b\"\n",
           "4:8: a host's name has 1 to 32 characters of A-Z a-z 0-9 . _ -"},
          {"a user without a password", "version = 1\n[cluster]\nredis = \"/r\"\nuser = \"x\"\n",
           "4:8: a user needs a \"password_file\""},
          {"two threads", "version = 1\nthreads = 2\n", "2:11: threads = 2 is not in this version"},
          {"real time as a number", "version = 1\nrealtime = 1\n", "2:12: \"realtime\" must be true or false"},
          {"owners by name", "version = 1\nowners = \"all\"\n", "2:10: \"owners\" must be true or false"},
          {"two bits of the mark", "version = 1\nmark_mask = 3\n",
           "2:13: \"mark_mask\" must be exactly one of 32 bits, such as \"0x8000000\""},
          {"no bit of the mark", "version = 1\nmark_mask = \"0x0\"\n",
           "2:13: \"mark_mask\" must be exactly one of 32 bits, such as \"0x8000000\""},
          {"the 33rd bit of the mark", "version = 1\nmark_mask = \"0x100000000\"\n",
           "2:13: \"mark_mask\" must be exactly one of 32 bits, such as \"0x8000000\""},
          {"a mark with a mask", "version = 1\nmark_mask = \"0x1/0x1\"\n",
           "2:13: \"mark_mask\" must be exactly one of 32 bits, such as \"0x8000000\""},
          {"a negative mark", "version = 1\nmark_mask = -1\n",
           "2:13: \"mark_mask\" must be exactly one of 32 bits, such as \"0x8000000\""},
          {"repair as a text", "version = 1\nrepair = \"yes\"\n", "2:10: \"repair\" must be true or false"},
          {"a group of operators that is nowhere", "version = 1\noperators = \"netops\"\n",
           "2:13: this group is not known on this host"},
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
           "7:13: another link has this interface and direction already"},
          {"two links in through one interface",
           kLink.substr(12) + "direction = \"ingress\"\n[[link]]\nname = \"x\"\ndirection = \"ingress\"\ninterface = "
                              "\"eth0\"\n",
           "9:13: another link has this interface and direction already"},
          {"a link rate without a unit", kLink.substr(12) + "rate = 100\n",
           "5:8: \"100\" has no unit: write \"100bit\" (100 bit/s) or \"100B/s\" (800 bit/s)"},
          {"a ceil of a link", kLink.substr(12) + "ceil = \"5mbit\"\n",
           "5:1: \"ceil\" is a key of a class, not of a link"},
          {"a misspelt direction", kLink.substr(12) + "direction = \"outgoing\"\n",
           "5:13: unknown value of \"direction\": the nearest is \"egress\""},
          {"a guard that is no truth", kLink.substr(12) + "guard = \"ssh\"\n", "5:9: \"guard\" must be true or false"},
          {"a misspelt word of tc-cake", kLink.substr(12) + "overhead = \"pppoe-pmt\"\n",
           "5:12: unknown value of \"overhead\": the nearest is \"pppoe-ptm\""},
          {"two words of tc-cake", kLink.substr(12) + "overhead = [\"docsis\", \"ether-vlan\"]\n",
           "5:12: \"overhead\" must be a text in quotation marks"},
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

}  // namespace
}  // namespace shaper
