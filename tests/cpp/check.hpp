// A test harness in one header: no download, next to no compile time.
//
//   TEST_CASE("threshold grows with the spike") {
//     CHECK(threshold(1e-3) > threshold(1e-4));
//     CHECK_NEAR(threshold(1e-4), 0.0447, 1e-4);
//     CHECK_THROWS(threshold(-1.0), std::invalid_argument);
//   }
//
// A failed check is reported with file, line and values, and the case goes on; an exception that
// leaves a case fails it. main.cpp runs every case, or those whose name contains its argument.
#pragma once

#include <cmath>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace check {

struct Case {
  const char* name;
  void (*run)();
};

// Function-local statics: cases register before main, in an unspecified order of files.
inline std::vector<Case>& cases() {
  static std::vector<Case> registered;
  return registered;
}

// Failed checks of the case that is running.
inline int& failures() {
  static int count = 0;
  return count;
}

struct Registrar {
  Registrar(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

inline void fail(const char* file, int line, const std::string& message) {
  ++failures();
  std::cerr << file << ":" << line << ": " << message << "\n";
}

inline void is_true(bool holds, const char* expression, const char* file, int line) {
  if (!holds) fail(file, line, std::string("CHECK(") + expression + ") is false");
}

// |actual - expected| <= tolerance; NaN is near nothing.
inline void is_near(double actual, double expected, double tolerance, const char* expression,
                    const char* file, int line) {
  if (std::abs(actual - expected) <= tolerance || actual == expected) return;
  std::ostringstream message;
  message.precision(17);
  message << "CHECK_NEAR(" << expression << "): " << actual << " is not " << expected << " within "
          << tolerance << " (off by " << actual - expected << ")";
  fail(file, line, message.str());
}

// What the exception being handled says of itself.
inline std::string current_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

// `call` must throw an Expected or something derived from it.
template <class Expected, class Call>
void throws(Call&& call, const char* expression, const char* file, int line) {
  std::string outcome = "nothing was thrown";
  try {
    std::forward<Call>(call)();
  } catch (const Expected&) {
    return;
  } catch (...) {
    outcome = "another exception came: " + current_exception();
  }
  fail(file, line, std::string("CHECK_THROWS(") + expression + "): " + outcome);
}

inline bool passes(const Case& test) {
  failures() = 0;
  try {
    test.run();
  } catch (...) {
    fail(test.name, 0, "uncaught exception: " + current_exception());
  }
  if (failures() > 0) std::cerr << "FAILED: " << test.name << "\n";
  return failures() == 0;
}

// Runs the cases whose name contains `filter`; the exit code of the program. That no case ran is a
// failure too: a mistyped filter or a lost source must not look like success.
inline int run_all(const std::string& filter) {
  int passed = 0;
  int failed = 0;
  for (const Case& test : cases()) {
    if (std::string(test.name).find(filter) == std::string::npos) continue;
    ++(passes(test) ? passed : failed);
  }
  std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed > 0 || passed == 0;
}

}  // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)
#define CHECK_CASE_(name, function)                                                  \
  static void function();                                                            \
  static const ::check::Registrar CHECK_JOIN(function, _registrar)(name, &function); \
  static void function()

#define TEST_CASE(name) CHECK_CASE_(name, CHECK_JOIN(check_case_, __LINE__))
#define CHECK(...) \
  ::check::is_true(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define CHECK_NEAR(actual, expected, tolerance)                                            \
  ::check::is_near(static_cast<double>(actual), static_cast<double>(expected),             \
                   static_cast<double>(tolerance), #actual ", " #expected ", " #tolerance, \
                   __FILE__, __LINE__)
#define CHECK_THROWS(expression, exception)                                                       \
  ::check::throws<exception>([&] { static_cast<void>(expression); }, #expression ", " #exception, \
                             __FILE__, __LINE__)
