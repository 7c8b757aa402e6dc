package infra_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deployedWith has, for each type of the module, the statements of deployer-policy.json
// with what the provider calls to read, create, update and delete it (internal/service of
// hashicorp/aws). Nothing else is in the policy.
func deployedWith() map[string]string {
	return map[string]string{
		"aws_apigatewayv2_api": "HttpApis HttpApiServiceRole", "aws_apigatewayv2_authorizer": "HttpApis",
		"aws_apigatewayv2_integration": "HttpApis", "aws_apigatewayv2_route": "HttpApis",
		"aws_apigatewayv2_stage": "HttpApis HttpApiAccessLogs", "aws_cloudwatch_dashboard": "Alarms",
		"aws_cloudwatch_event_archive": "EventBus", "aws_cloudwatch_event_bus": "EventBus",
		"aws_cloudwatch_event_rule": "EventBus", "aws_cloudwatch_event_target": "EventBus",
		"aws_cloudwatch_log_group": "LogGroups HttpApiAccessLogs", "aws_cloudwatch_metric_alarm": "Alarms ReadAlarms",
		"aws_dynamodb_table": "Tables", "aws_iam_policy": "Policies", "aws_iam_role": "Roles",
		"aws_iam_role_policy": "Roles", "aws_lambda_alias": "Functions",
		"aws_lambda_event_source_mapping": "Mappings MappingTags",
		"aws_lambda_function":             "Functions PassedRoles",
		"aws_lambda_functions":            "Mappings", "aws_lambda_function_event_invoke_config": "Functions",
		"aws_lambda_permission":     "Functions",
		"aws_scheduler_schedule":    "Scheduler PassedRoles",
		"aws_secretsmanager_secret": "Secrets", "aws_secretsmanager_secret_version": "Secrets",
		"aws_sqs_queue": "Queues", "aws_sqs_queue_policy": "Queues", "aws_sqs_queue_redrive_allow_policy": "Queues",
		"aws_caller_identity": "", "aws_partition": "", "aws_region": "", "terraform_data": "", // always allowed
	}
}

func TestTheDeployersPolicyHasStatementsForWhatTheModuleNeedsAndNoMore(t *testing.T) {
	var types, want, got []string
	for name, statements := range deployedWith() {
		types = append(types, name)
		want = append(want, strings.Fields(statements)...)
	}
	declared := set(matches(t, `(?m)^(?:resource|data) "(\w+)"`, module+"*.tf"))
	if diff := cmp.Diff(set(types), declared); diff != "" {
		t.Errorf("types (- here, + the module): name the statements here and in deployer-policy.json:\n%s", diff)
	}
	text := read(t, "deployer-policy.json")
	if size := len(strings.Join(strings.Fields(text), "")); size > 6144 {
		t.Errorf("got %d characters, want at most 6,144 (IAM user guide, quotas)", size)
	}
	var policy struct {
		Statement []struct {
			Sid      string
			Resource any
		}
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		t.Fatal(err)
	}
	// Some statements are about resources whose ARNs contain no name of the module.
	everywhere := []string{"HttpApiAccessLogs", "HttpApis", "HttpApiServiceRole", "MappingTags", "Mappings", "ReadAlarms"}
	for _, s := range policy.Statement {
		got = append(got, s.Sid)
		for resource := range strings.FieldsSeq(strings.Trim(fmt.Sprint(s.Resource), "[]")) {
			if !slices.Contains(everywhere, s.Sid) && !regexp.MustCompile(`[:/]orderonce-\*$`).MatchString(resource) {
				t.Errorf("%s: %s: want the prefix of the module's names", s.Sid, resource)
			}
		}
	}
	if diff := cmp.Diff(set(got), set(want)); diff != "" {
		t.Errorf("statements (- deployer-policy.json, + what the types need):\n%s", diff)
	}
}
