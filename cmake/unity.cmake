# The build of the fuzz targets compiles several files of a library as one (CMAKE_UNITY_BUILD): headers
# are read, and templates compiled, once for all of them. Two files of a target whose unnamed namespaces
# have a name in common cannot be compiled so. One of each such pair stands here, as MODULE/FILE.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
set(reprise_compiled_alone
    base/duration.cpp
    base/ids.cpp
    base/rate.cpp
    broker/error_groups.cpp
    broker/sessions.cpp
    engine/engine_leases.cpp
    hooks/call_line.cpp
    hooks/host/budget.cpp
    hooks/host/host_server.cpp
    hooks/host/library_base.cpp
    hooks/host/library_math.cpp
    hooks/host/library_string.cpp
    hooks/host/library_utf8.cpp
    hooks/host/message.cpp
    runbook/shell_quoting.cpp
    server/access_tokens.cpp
    server/backup_handler.cpp
    server/beanstalk_connection.cpp
    server/beanstalk_io.cpp
    server/beanstalk_parser.cpp
    server/beanstalk_server.cpp
    server/job_handlers.cpp
    server/lease_handlers.cpp
    server/queue_handlers.cpp
    server/selection_handlers.cpp
    server/throttle_handlers.cpp
    spool/dead_letter_file.cpp
    spool/event.cpp
    storage/durable/backup.cpp
    storage/durable/job_index.cpp
    storage/durable/salvage_copy.cpp
    storage/rocksdb/table_writer.cpp
)
