# Finds the libraries that are switched on and wraps each in one interface
# target: exo_dep_llvm, exo_dep_z3, exo_dep_json, exo_dep_edit. A library that is
# switched on and absent stops the configuration with the package's name, except
# libedit, which is then left out.

# exo_dep(TARGET, option, Debian package, header, library names, search hints)
function(exo_dep target option package header names hints)
  find_path(${target}_include ${header} HINTS ${hints}
            PATH_SUFFIXES include)
  find_library(${target}_library NAMES ${names} HINTS ${hints}
               PATH_SUFFIXES lib)
  mark_as_advanced(${target}_include ${target}_library)
  if(NOT ${target}_include OR NOT ${target}_library)
    message(FATAL_ERROR "${header} or its library not found: install "
            "${package} (./dev setup does), or configure with "
            "-D${option}=OFF")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE
                             ${${target}_include})
  target_link_libraries(${target} INTERFACE ${${target}_library})
endfunction()

if(EXO_WITH_LLVM)
  exo_dep(exo_dep_llvm EXO_WITH_LLVM llvm-19-dev llvm-c/Core.h
          "LLVM-19" "/usr/lib/llvm-19;$ENV{LLVM_DIR}")
endif()
if(EXO_WITH_Z3)
  exo_dep(exo_dep_z3 EXO_WITH_Z3 libz3-dev z3.h z3 "")
endif()
if(EXO_WITH_JSON)
  exo_dep(exo_dep_json EXO_WITH_JSON libjansson-dev jansson.h jansson "")
endif()
if(EXO_WITH_EDIT)
  find_path(exo_dep_edit_include histedit.h)
  find_library(exo_dep_edit_library edit)
  if(exo_dep_edit_include AND exo_dep_edit_library)
    exo_dep(exo_dep_edit EXO_WITH_EDIT libedit-dev histedit.h edit "")
  else()
    message(STATUS "libedit not found (libedit-dev): plain lines at a terminal")
    set(EXO_WITH_EDIT OFF)
  endif()
endif()
