// Stands in front of libstdc++'s header of this name. std::string is compiled into libstdc++, which has no hooks, and
// headers say that it need not be compiled again; without that word the program has a copy of its own, with hooks. The
// older kind of string is left alone: its copies would not agree on what the empty one is.
#pragma GCC system_header
#if !defined(_GLIBCXX_USE_CXX11_ABI) || _GLIBCXX_USE_CXX11_ABI
#pragma push_macro("_GLIBCXX_EXTERN_TEMPLATE")
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE 0
#include_next <bits/basic_string.tcc>
#pragma pop_macro("_GLIBCXX_EXTERN_TEMPLATE")
#else
#include_next <bits/basic_string.tcc>
#endif
