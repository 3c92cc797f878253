# For cross builds: googletest from its sources (Debian package googletest).
if(NOT TARGET GTest::gtest)
  add_subdirectory(/usr/src/googletest "${CMAKE_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
endif()
set(GTest_FOUND TRUE)
