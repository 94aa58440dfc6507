// The traits that kernels ask for.
#pragma once
namespace std {
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  __host__ __device__ constexpr operator T() const { return v; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <bool condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool condition, class T = void>
using enable_if_t = typename enable_if<condition, T>::type;
template <bool condition, class A, class B>
struct conditional {
  typedef A type;
};
template <class A, class B>
struct conditional<false, A, B> {
  typedef B type;
};
template <bool condition, class A, class B>
using conditional_t = typename conditional<condition, A, B>::type;
template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class T>
struct remove_const {
  typedef T type;
};
template <class T>
struct remove_const<const T> {
  typedef T type;
};
template <class T>
struct remove_volatile {
  typedef T type;
};
template <class T>
struct remove_volatile<volatile T> {
  typedef T type;
};
template <class T>
struct remove_cv {
  typedef typename remove_const<typename remove_volatile<T>::type>::type type;
};
template <class T>
struct remove_reference {
  typedef T type;
};
template <class T>
struct remove_reference<T&> {
  typedef T type;
};
template <class T>
struct remove_reference<T&&> {
  typedef T type;
};
template <class T>
struct remove_pointer {
  typedef T type;
};
template <class T>
struct remove_pointer<T*> {
  typedef T type;
};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class T>
struct decay {
  typedef remove_cv_t<remove_reference_t<T>> type;
};
template <class T>
using decay_t = typename decay<T>::type;
template <class T>
struct is_pointer : false_type {};
template <class T>
struct is_pointer<T*> : true_type {};
#define GPA_LSP_KIND(kind, type) \
  template <>                    \
  struct kind<type> : true_type {};
template <class T>
struct is_integral : false_type {};
GPA_LSP_KIND(is_integral, bool)
GPA_LSP_KIND(is_integral, char)
GPA_LSP_KIND(is_integral, signed char)
GPA_LSP_KIND(is_integral, unsigned char)
GPA_LSP_KIND(is_integral, short)
GPA_LSP_KIND(is_integral, unsigned short)
GPA_LSP_KIND(is_integral, int)
GPA_LSP_KIND(is_integral, unsigned int)
GPA_LSP_KIND(is_integral, long)
GPA_LSP_KIND(is_integral, unsigned long)
GPA_LSP_KIND(is_integral, long long)
GPA_LSP_KIND(is_integral, unsigned long long)
template <class T>
struct is_floating_point : false_type {};
GPA_LSP_KIND(is_floating_point, float)
GPA_LSP_KIND(is_floating_point, double)
#undef GPA_LSP_KIND
template <class T>
struct is_arithmetic : integral_constant<bool, is_integral<T>::value || is_floating_point<T>::value> {};
template <class T, bool numeric>
struct gpa_lsp_signedness : false_type {};
template <class T>
struct gpa_lsp_signedness<T, true> : integral_constant<bool, (T(-1) < T(0))> {};
template <class T>
struct is_signed : gpa_lsp_signedness<T, is_arithmetic<T>::value> {};
template <class T>
struct is_unsigned : integral_constant<bool, is_arithmetic<T>::value && !is_signed<T>::value> {};
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;
template <class T>
inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T>
inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T>
inline constexpr bool is_pointer_v = is_pointer<T>::value;
}  // namespace std
