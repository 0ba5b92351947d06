// Apart from everything else, so that a test can link a daemon of another version.
#include "shaper/version.h"

namespace shaper {

const char* const kVersion = SHAPER_VERSION;

}  // namespace shaper
