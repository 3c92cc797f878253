# What `cmake --install` puts elsewhere: the engine alone, as one shared and one static library, with its headers and a
# package for find_package(octet). Needs neither LibTorch nor anything else of Octet where it is used.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)

set(objects "")
foreach(layer numerics kernels engine)
  if(TARGET octet_${layer})
    list(APPEND objects $<TARGET_OBJECTS:octet_${layer}>)
  endif()
endforeach()
# The log, the signals and the locks of folders belong to the program.
list(APPEND objects "$<FILTER:$<TARGET_OBJECTS:octet_base>,EXCLUDE,/(log|signals|folder_lock)\\.cc>")

add_library(octet_shared SHARED ${objects})
add_library(octet_static STATIC ${objects})
set_target_properties(octet_shared PROPERTIES EXPORT_NAME octet VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      LINK_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/octet.map")
target_link_options(octet_shared PRIVATE "LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/octet.map")
foreach(target octet_shared octet_static)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME octet LINKER_LANGUAGE CXX
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
  target_link_libraries(${target} PRIVATE Threads::Threads)
  target_include_directories(${target} INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
endforeach()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/octet")
install(TARGETS octet_shared octet_static EXPORT octetTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT engine NAMELINK_COMPONENT engine
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT engine)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/octet" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT engine)
install(EXPORT octetTargets NAMESPACE octet:: DESTINATION "${package_folder}" COMPONENT engine)
configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/octetConfig.cmake.in"
                              "${CMAKE_BINARY_DIR}/cmake/octetConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/cmake/octetConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/cmake/octetConfig.cmake" "${CMAKE_BINARY_DIR}/cmake/octetConfigVersion.cmake"
        DESTINATION "${package_folder}" COMPONENT engine)
