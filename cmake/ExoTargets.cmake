# The functions behind CMakeLists.txt: layers, tools, tests, fuzzers, install.

# What every C file of the project is compiled with. Contraction is off because
# the meaning of a float must not depend on the compiler. The four EXO_WITH_*
# are 1 or 0 everywhere; only the layers that may ask do ask.
# Tests compile with exo_flags alone: Criterion's macros are not pedantic.
add_library(exo_flags INTERFACE)
add_library(exo_strict INTERFACE)
target_link_libraries(exo_strict INTERFACE exo_flags)
target_compile_options(exo_strict INTERFACE -Wpedantic)
target_include_directories(exo_flags INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
target_compile_options(exo_flags INTERFACE
    -Wall -Wextra $<$<NOT:$<CONFIG:Release>>:-Werror> -ffp-contract=off)
target_compile_definitions(exo_flags INTERFACE
    _XOPEN_SOURCE=700
    EXO_VERSION="${PROJECT_VERSION}"
    EXO_WITH_LLVM=$<BOOL:${EXO_WITH_LLVM}>
    EXO_WITH_Z3=$<BOOL:${EXO_WITH_Z3}>
    EXO_WITH_JSON=$<BOOL:${EXO_WITH_JSON}>
    EXO_WITH_EDIT=$<BOOL:${EXO_WITH_EDIT}>)
target_link_options(exo_flags INTERFACE -Wl,--as-needed)

set(exo_sanitize ${EXO_SANITIZE})
if(EXO_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "EXO_FUZZ needs clang: -DCMAKE_C_COMPILER=clang-19")
  endif()
  if(NOT exo_sanitize)
    set(exo_sanitize address undefined)
  endif()
  target_compile_options(exo_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(exo_sanitize)
  list(JOIN exo_sanitize "," exo_sanitize_csv)
  target_compile_options(exo_flags INTERFACE
      -fsanitize=${exo_sanitize_csv} -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
  target_link_options(exo_flags INTERFACE -fsanitize=${exo_sanitize_csv})
endif()

# exo_layer(NAME GLOBS pattern.. [EXCLUDE regex] LINKS library..)
# A static library of the globbed sources, or an interface library while there
# are none.
function(exo_layer name)
  cmake_parse_arguments(ARG "" "EXCLUDE" "GLOBS;LINKS" ${ARGN})
  list(TRANSFORM ARG_GLOBS PREPEND ${CMAKE_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_GLOBS})
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PRIVATE exo_strict PUBLIC ${ARG_LINKS})
    set_property(GLOBAL APPEND PROPERTY EXO_STATIC_LIBRARIES ${name})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_LINKS})
  endif()
endfunction()

# A library of an outside project that one layer alone may include.
function(exo_layer_uses name dependency)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(${name} PRIVATE ${dependency})
  endif()
endfunction()

# exo_tool(NAME LINKS library..): tools/NAME.c, once it exists.
function(exo_tool name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY EXO_NAMED_TOOLS ${name})
  file(GLOB main CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/${name}.c)
  if(main)
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE
        exo_strict exo_tools ${ARG_LINKS} exo_verify)
    set_property(GLOBAL APPEND PROPERTY EXO_TOOLS ${name})
  endif()
endfunction()

# Every tools/exo-*.c that CMakeLists.txt does not name links what exo-check
# links.
function(exo_other_tools)
  file(GLOB mains CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/exo-*.c)
  get_property(named GLOBAL PROPERTY EXO_NAMED_TOOLS)
  foreach(main ${mains})
    get_filename_component(name ${main} NAME_WE)
    if(NOT name IN_LIST named)
      exo_tool(${name})
    endif()
  endforeach()
endfunction()

# The tools look for <folder of the executable>/../share/exo/{lib,kernels}:
# links in the build tree, folders when installed.
function(exo_share_links)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/exo)
  foreach(folder lib kernels)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder}
         ${CMAKE_BINARY_DIR}/share/exo/${folder} SYMBOLIC)
  endforeach()
endfunction()

set(exo_all_layers
    exo_tools exo_codegen exo_runtime exo_verify exo_passes exo_ir)

# The CUDA driver that tests load or link instead of the real one:
# build/test/stub/libcuda.so.1, with a link libcuda.so.
function(exo_stub_driver)
  add_library(exo_stub_driver SHARED
      ${CMAKE_SOURCE_DIR}/test/stub/libcuda_stub.c)
  set_target_properties(exo_stub_driver PROPERTIES
      OUTPUT_NAME cuda
      SOVERSION 1
      C_VISIBILITY_PRESET hidden
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/stub)
  target_link_libraries(exo_stub_driver PRIVATE exo_flags)
endfunction()

# exo-opt with a lowering that can be told to break a rule (`inject=`), for
# test/conformance/inject.sh: these files are compiled again and take the place
# of the library's.
function(exo_inject_tool)
  file(GLOB lowering CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/passes/lower/*.c)
  add_executable(exo-opt-inject ${CMAKE_SOURCE_DIR}/tools/exo-opt.c
      ${CMAKE_SOURCE_DIR}/passes/pass_manager.c ${lowering})
  set_target_properties(exo-opt-inject PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  target_compile_definitions(exo-opt-inject PRIVATE EXO_INJECT)
  target_link_libraries(exo-opt-inject PRIVATE exo_flags ${exo_all_layers} m)
endfunction()

# One Criterion executable per test/unit/*_test.c, in build/test/. A test of
# the LLVM printer is named llvm_*, one of the Z3 layer smt_*, and is left out
# with its library. Criterion's macros want GNU C.
function(exo_unit_tests)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/test/unit/*_test.c)
  find_path(criterion_include criterion/criterion.h)
  find_library(criterion_library criterion)
  mark_as_advanced(criterion_include criterion_library)
  if(NOT criterion_include OR NOT criterion_library)
    message(STATUS "Criterion not found (libcriterion-dev): no unit tests")
    return()
  endif()
  if(NOT EXO_WITH_LLVM)
    list(FILTER tests EXCLUDE REGEX "/llvm_[^/]*$")
  endif()
  if(NOT EXO_WITH_Z3)
    list(FILTER tests EXCLUDE REGEX "/smt_[^/]*$")
  endif()
  foreach(test ${tests})
    get_filename_component(name ${test} NAME_WE)
    add_executable(${name} ${test})
    set_target_properties(${name} PROPERTIES
        C_EXTENSIONS ON
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    target_compile_definitions(${name} PRIVATE
        EXO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
        EXO_BINARY_DIR="${CMAKE_BINARY_DIR}")
    target_include_directories(${name} SYSTEM PRIVATE ${criterion_include})
    target_link_libraries(${name} PRIVATE
        exo_flags ${exo_all_layers} ${criterion_library} m)
    if(name MATCHES "^llvm_")
      target_link_libraries(${name} PRIVATE exo_dep_llvm)
    endif()
    add_dependencies(${name} exo_stub_driver)
  endforeach()
  list(JOIN tests "\n" list)
  string(REGEX REPLACE "[^\n]*/([^/\n]*)\\.c" "\\1" list "${list}")
  file(WRITE ${CMAKE_BINARY_DIR}/test/unit-tests.txt "${list}\n")
endfunction()

# The build's facts for test/lit.cfg.py.
function(exo_lit_site)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/test/lit)
  foreach(feature LLVM Z3 JSON EDIT)
    if(EXO_WITH_${feature})
      set(EXO_HAVE_${feature} True)
    else()
      set(EXO_HAVE_${feature} False)
    endif()
  endforeach()
  if(EXISTS ${CMAKE_SOURCE_DIR}/test/lit.site.cfg.py.in)
    configure_file(${CMAKE_SOURCE_DIR}/test/lit.site.cfg.py.in
                   ${CMAKE_BINARY_DIR}/test/lit.site.cfg.py @ONLY)
  endif()
endfunction()

# One libFuzzer executable per test/fuzz/*_fuzz.c, in build/fuzz/.
function(exo_fuzzers)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/test/fuzz/*_fuzz.c)
  foreach(fuzzer ${fuzzers})
    get_filename_component(name ${fuzzer} NAME_WE)
    add_executable(${name} ${fuzzer})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE exo_flags ${exo_all_layers})
  endforeach()
endfunction()

# Tools, static libraries, headers with their .def rows, library and kernel
# texts, exo.pc.
function(exo_install)
  get_property(tools GLOBAL PROPERTY EXO_TOOLS)
  get_property(libraries GLOBAL PROPERTY EXO_STATIC_LIBRARIES)
  if(tools OR libraries)
    install(TARGETS ${tools} ${libraries})
  endif()
  set(EXO_PC_LIBS "")
  foreach(library ${exo_all_layers})
    if(library IN_LIST libraries)
      string(APPEND EXO_PC_LIBS " -l${library}")
    endif()
  endforeach()
  string(STRIP "${EXO_PC_LIBS}" EXO_PC_LIBS)
  set(EXO_PC_LIBS_PRIVATE "-lm -l${CMAKE_DL_LIBS}")
  foreach(dependency llvm z3 json)
    if(exo_dep_${dependency}_library)
      string(TOUPPER ${dependency} upper)
      if(EXO_WITH_${upper})
        string(APPEND EXO_PC_LIBS_PRIVATE
               " ${exo_dep_${dependency}_library}")
      endif()
    endif()
  endforeach()
  foreach(folder ir passes verify codegen runtime)
    if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/${folder})
      install(DIRECTORY ${folder}
              DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/exo
              FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
    endif()
  endforeach()
  foreach(folder lib kernels)
    file(GLOB texts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*)
    if(texts)
      install(DIRECTORY ${folder}
              DESTINATION ${CMAKE_INSTALL_DATADIR}/exo)
    endif()
  endforeach()
  # The prefix as seen from exo.pc, so that the tree can be installed or moved
  # anywhere.
  file(RELATIVE_PATH EXO_PC_UP /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  configure_file(${CMAKE_SOURCE_DIR}/exo.pc.in ${CMAKE_BINARY_DIR}/exo.pc
                 @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/exo.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
