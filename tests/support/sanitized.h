// Whether this build has sanitizers, which are slow and after other mistakes than wrong numbers. Clang says it by
// __has_feature, GCC by macros.
#pragma once

namespace octet::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace octet::testing
