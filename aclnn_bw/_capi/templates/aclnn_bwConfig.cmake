# find_package(aclnn_bw) gives the target aclnn_bw::aclnn_bw: link it, and the headers are found too.
get_filename_component(_aclnn_bw_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET aclnn_bw::aclnn_bw)
    add_library(aclnn_bw::aclnn_bw SHARED IMPORTED)
    set_target_properties(aclnn_bw::aclnn_bw PROPERTIES
        IMPORTED_LOCATION "${_aclnn_bw_prefix}/lib/libaclnn_bw.so"
        IMPORTED_SONAME "libaclnn_bw.so"
        INTERFACE_INCLUDE_DIRECTORIES "${_aclnn_bw_prefix}/include")
endif()
set(aclnn_bw_INCLUDE_DIRS "${_aclnn_bw_prefix}/include")
set(aclnn_bw_LIBRARIES aclnn_bw::aclnn_bw)
# Laid out as CANN's own: include/ and lib64/ with the names libascendcl.so, libopapi.so, ...
set(aclnn_bw_CANN_PREFIX "${_aclnn_bw_prefix}")
unset(_aclnn_bw_prefix)
