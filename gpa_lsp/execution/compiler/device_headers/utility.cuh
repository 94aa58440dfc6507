// Pairs and an exchange; std::move and std::forward are known to the compiler.
#pragma once
#include <algorithm>
namespace std {
template <class A, class B>
struct pair {
  A first;
  B second;
};
}  // namespace std
