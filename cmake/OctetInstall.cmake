# What `cmake --install` puts elsewhere, in four components that are also the Debian packages (OctetPackage.cmake):
#   runtime      the engine alone as a shared library: needs neither LibTorch nor anything else of Octet where it is used
#   development  its headers, the static library, find_package(octet) and octet.pc
#   program      octet, which does not need LibTorch, its manual pages and completions
#   training     octet_training, which octet becomes for training
# The target octet_installed makes all of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)

set(objects "")
foreach(layer numerics dense kernels engine)
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

# The compiler, for programs that make engine files themselves. It has what it needs of the engine inside, and nothing of it
# is seen; Error and the types of octet/engine.h are those of octet_shared.
add_library(octet_compiler_shared SHARED $<TARGET_OBJECTS:octet_compiler>)
set_target_properties(octet_compiler_shared PROPERTIES EXPORT_NAME compiler OUTPUT_NAME octet_compiler VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINKER_LANGUAGE CXX
                      LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib" LINK_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/octet_compiler.map")
target_link_options(octet_compiler_shared PRIVATE "LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/octet_compiler.map" "LINKER:--as-needed")
target_include_directories(octet_compiler_shared PRIVATE "${CMAKE_SOURCE_DIR}/include"
                           INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(octet_compiler_shared PUBLIC octet_shared PRIVATE octet_onnx octet_lower Threads::Threads)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/octet")
install(TARGETS octet_shared octet_static octet_compiler_shared EXPORT octetTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/octet" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
install(EXPORT octetTargets NAMESPACE octet:: DESTINATION "${package_folder}" COMPONENT development)
configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/octetConfig.cmake.in"
                              "${CMAKE_BINARY_DIR}/cmake/octetConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/cmake/octetConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/cmake/octetConfig.cmake" "${CMAKE_BINARY_DIR}/cmake/octetConfigVersion.cmake"
        DESTINATION "${package_folder}" COMPONENT development)
file(RELATIVE_PATH octet_pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${CMAKE_SOURCE_DIR}/cmake/octet.pc.in" "${CMAKE_BINARY_DIR}/cmake/octet.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/cmake/octet.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
add_custom_target(octet_installed DEPENDS octet_shared octet_static octet_compiler_shared)

if(TARGET octet_cli)
  # What the program says of its commands. Where there is training, octet_training says it.
  set(described "${CMAKE_BINARY_DIR}/described")
  add_custom_command(
    OUTPUT "${described}/made"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${described}"
    COMMAND octet_cli man --quiet --folder "${described}/man"
    COMMAND octet_cli completions bash > "${described}/octet.bash"
    COMMAND octet_cli completions zsh > "${described}/octet.zsh"
    COMMAND octet_cli completions fish > "${described}/octet.fish"
    COMMAND "${CMAKE_COMMAND}" -E touch "${described}/made"
    DEPENDS octet_cli VERBATIM COMMENT "Writing manual pages and completions")
  add_custom_target(octet_described DEPENDS "${described}/made")
  add_dependencies(octet_installed octet_described)
  install(TARGETS octet_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
  install(DIRECTORY "${described}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
  foreach(shell bash:bash-completion/completions/octet zsh:zsh/vendor-completions/_octet
          fish:fish/vendor_completions.d/octet.fish)
    string(REPLACE ":" ";" shell "${shell}")
    list(GET shell 0 name)
    list(GET shell 1 path)
    get_filename_component(folder "${path}" DIRECTORY)
    get_filename_component(file "${path}" NAME)
    install(FILES "${described}/octet.${name}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}" RENAME "${file}"
            COMPONENT program)
  endforeach()
endif()

if(TARGET octet_training)
  # LibTorch stays where it is fetched to, or is put beside the program, as in packages.
  option(OCTET_INSTALL_LIBTORCH "Install LibTorch's libraries with the training program" OFF)
  if(OCTET_INSTALL_LIBTORCH)
    set(libtorch "${CMAKE_INSTALL_LIBDIR}/octet")
    file(GLOB cuda_libraries "${OCTET_TORCH_DIR}/../nvidia/*/lib/libcudart.so*" "${OCTET_TORCH_DIR}/../nvidia/*/lib/libcupti.so*")
    file(GLOB gomp_libraries "${OCTET_TORCH_DIR}/lib/libgomp*.so*")
    install(PROGRAMS "${OCTET_TORCH_DIR}/lib/libtorch_cpu.so" "${OCTET_TORCH_DIR}/lib/libc10.so" ${gomp_libraries}
            ${cuda_libraries} DESTINATION "${libtorch}" COMPONENT training)
    file(GLOB license_folders "${OCTET_TORCH_DIR}/../*.dist-info/licenses")
    foreach(folder ${license_folders})
      get_filename_component(of "${folder}" DIRECTORY)
      get_filename_component(of "${of}" NAME_WLE)
      install(DIRECTORY "${folder}/" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/octet-training/licenses/${of}" COMPONENT training)
    endforeach()
    file(RELATIVE_PATH from_bin "/${CMAKE_INSTALL_BINDIR}" "/${libtorch}")
    set_target_properties(octet_training PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin}")
  else()
    set_target_properties(octet_training PROPERTIES INSTALL_RPATH "${OCTET_TORCH_DIR}/lib")
  endif()
  install(TARGETS octet_training RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT training)
endif()

# Each package says what it may be used for.
foreach(component runtime:liboctet development:liboctet-dev program:octet training:octet-training)
  string(REPLACE ":" ";" component "${component}")
  list(GET component 0 name)
  list(GET component 1 folder)
  if((name STREQUAL program AND NOT TARGET octet_cli) OR (name STREQUAL training AND NOT TARGET octet_training))
    continue()
  endif()
  set(notices "${CMAKE_SOURCE_DIR}/THIRD_PARTY_NOTICES.md")
  if(name STREQUAL program)
    list(APPEND notices "${CMAKE_SOURCE_DIR}/CHANGELOG.md")
  endif()
  install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${folder}" RENAME copyright
          COMPONENT ${name})
  install(FILES ${notices} DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${folder}" COMPONENT ${name})
endforeach()
