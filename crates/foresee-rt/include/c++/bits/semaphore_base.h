// Stands in front of libstdc++'s header of this name. Its semaphores count with atomics, so a thread that lowers one seems to
// have read the count. Those of libc are known for what they are. No function of libstdc++ itself takes one.
#pragma GCC system_header
#define _GLIBCXX_USE_POSIX_SEMAPHORE 1
#define _GLIBCXX_REQUIRE_POSIX_SEMAPHORE 1
#include_next <bits/semaphore_base.h>
