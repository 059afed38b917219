// Projects: directories whose runbooks this server works by.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "model/limits.h"
#include "server/handlers.h"
#include "server/worker_json.h"

namespace reprise::server {
namespace {

using worker::ProjectView;

// {name}, for a route that takes no parameter.
Result<std::string> project_name(Request& request) {
  REPRISE_TRY(check_name("project", request.id));
  REPRISE_TRY(request.query.finish());
  return std::move(request.id);
}

Result<std::string> read_directory(const Request& request) {
  const auto json = request.json_body();
  if (!json) return json.error();
  JsonFields fields(*json);
  std::string root;
  const bool has_root = read_root(fields, root);
  REPRISE_TRY(fields.finish());
  if (!has_root) {
    return Error{Errc::invalid_request, "root: is missing: the directory that holds .reprise/"};
  }
  return root;
}

}  // namespace

Status list_projects(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.workers->list_projects(exchange.then<std::vector<ProjectView>>(projects_response));
  return ok();
}

Status put_project(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto name = project_name(request);
  if (!name) return name.error();
  auto root = read_directory(request);
  if (!root) return root.error();
  // Asked first, so that the reply can say whether it is new.
  auto done = exchange.then<std::pair<ProjectView, bool>>([](const auto& added) {
    Response response = project_response(added.first);
    if (added.second) response.http_status = 201;
    return response;
  });
  api.workers->list_projects(
      [workers = api.workers, name = std::move(*name), root = std::move(*root),
       done = std::move(done)](Result<std::vector<ProjectView>> projects) mutable {
        if (!projects) return done(projects.error());
        const bool is_new = std::ranges::find(*projects, name, &ProjectView::ns) == projects->end();
        workers->add_project(std::move(root), std::move(name),
                             [is_new, done = std::move(done)](Result<ProjectView> project) mutable {
                               if (!project) return done(project.error());
                               done(std::pair(std::move(*project), is_new));
                             });
      });
  return ok();
}

Status delete_project(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto name = project_name(request);
  if (!name) return name.error();
  REPRISE_TRY(request.expect_no_fields());
  api.workers->remove_project(std::move(*name), exchange.then<ProjectView>(project_response));
  return ok();
}

}  // namespace reprise::server
