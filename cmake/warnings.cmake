# Warnings are errors, for our code only, on GCC and clang.
add_library(shaper_warnings INTERFACE)
target_compile_options(shaper_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Two false alarms of GCC 12: docs/decisions/0001-two-warnings-off-for-gcc.md
  target_compile_options(shaper_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(SHAPER_SANITIZE)
  add_compile_options(-fsanitize=${SHAPER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SHAPER_SANITIZE})
endif()
