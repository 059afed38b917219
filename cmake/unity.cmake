# Builds with CMAKE_UNITY_BUILD (all but `dev`) compile several files of a target as one: headers are read, and
# templates compiled, once for all of them, which takes a third of the time. Two files whose unnamed namespaces
# have a name in common cannot be compiled so. One of each such pair stands here, as MODULE/FILE.
set(reprise_compiled_alone
    base/duration.cpp
    base/ids.cpp
    base/ids_test.cpp
    base/json_test.cpp
    base/rate.cpp
    broker/broker_test.cpp
    broker/endings_test.cpp
    broker/error_groups.cpp
    broker/sessions.cpp
    cli/dead_letter_report_test.cpp
    cli/job_encoder.cpp
    cli/job_record_test.cpp
    cli/key_record_test.cpp
    cli/operations.cpp
    cli/queue_admin.cpp
    cli/queue_jobs.cpp
    cli/queue_leases.cpp
    cli/queue_policy.cpp
    cli/queue_retry.cpp
    cli/queue_stats.cpp
    cli/run_record.cpp
    cli/run_record_test.cpp
    cli/runbook_commands.cpp
    cli/runbook_report.cpp
    cli/status.cpp
    cli/throttle_commands.cpp
    engine/hook_breaker_test.cpp
    hooks/call_line.cpp
    hooks/hook_runner_test.cpp
    hooks/host/budget.cpp
    hooks/host/host_server.cpp
    hooks/host/library_base.cpp
    hooks/host/library_math.cpp
    hooks/host/library_string.cpp
    hooks/host/library_utf8.cpp
    hooks/host/message.cpp
    hooks/log_window_test.cpp
    model/job_test.cpp
    model/queue_config_json_test.cpp
    runbook/expand_test.cpp
    runbook/node_test.cpp
    runbook/shell_quoting.cpp
    server/access_tokens.cpp
    server/backup_handler.cpp
    server/beanstalk_connection.cpp
    server/beanstalk_io.cpp
    server/beanstalk_parser.cpp
    server/beanstalk_server.cpp
    server/http_operations_test.cpp
    server/http_projects_test.cpp
    server/http_runs_test.cpp
    server/http_selection_test.cpp
    server/http_timers_test.cpp
    server/http_workers_test.cpp
    server/job_handlers.cpp
    server/job_json_test.cpp
    server/lease_handlers.cpp
    server/queue_handlers.cpp
    server/selection_handlers.cpp
    server/throttle_handlers.cpp
    server/wrong_tokens_test.cpp
    sim/model_failures.cpp
    sim/model_operations.cpp
    sim/model_queues.cpp
    spool/dead_letter_file.cpp
    spool/drain_lock_test.cpp
    spool/event.cpp
    spool/event_test.cpp
    storage/durable/backup.cpp
    storage/durable/job_index.cpp
    storage/durable/salvage_copy.cpp
    storage/journal/segment_pool_test.cpp
    storage/records_test.cpp
    storage/rocksdb/table_writer.cpp
    worker/timer_table_test.cpp
)

# An archive's member is left out as a whole when another object has its symbols, so what
# tests/crash compiles once more must be a member of its own.
set(reprise_planted_sources
    engine/engine_claim.cpp
    engine/engine_leases.cpp
    engine/engine_push.cpp
    engine/failure_decision.cpp
    server/job_json.cpp
)
list(APPEND reprise_compiled_alone ${reprise_planted_sources})

# reprise_compiled_as_one(OUT MODULE NAME FILES...)
#
# Sets OUT to what a target called NAME compiles instead of FILES: sources that include ten of them each,
# and those that are compiled alone. CMake's own unity sources name files by absolute paths, so that a
# compiler cache would be of no use to another checkout. Files stay with their neighbours in the list, also
# when one of them is compiled alone.
set(reprise_files_as_one 10)
function(reprise_compiled_as_one out module name)
  if(NOT CMAKE_UNITY_BUILD)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/as_one")
  set(sources "")
  set(index 0)
  foreach(source IN LISTS ARGN)
    if("${module}/${source}" IN_LIST reprise_compiled_alone)
      list(APPEND sources "${source}")
    else()
      math(EXPR group "${index} / ${reprise_files_as_one}")
      list(APPEND groups ${group})
      get_filename_component(path "${source}" ABSOLUTE)
      file(RELATIVE_PATH path "${folder}" "${path}")
      string(APPEND content_${group} "#include \"${path}\"\n")
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    set(file "${folder}/${name}_${group}.cpp")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${content_${group}}" @ONLY)
    list(APPEND sources "${file}")
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
