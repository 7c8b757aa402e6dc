# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. The mocks are repeated in each file, because OpenTofu has no
# mock_provider that reads them from a folder.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }

  mock_resource "aws_sqs_queue" {
    defaults = {
      arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
      url = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
    }
  }

  mock_resource "aws_dynamodb_table" {
    defaults = {
      arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
      stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"
    }
  }

  mock_resource "aws_secretsmanager_secret" {
    defaults = {
      id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
    }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/role" }
  }

  mock_resource "aws_cloudwatch_event_bus" {
    defaults = { arn = "arn:aws:events:eu-west-1:123456789012:event-bus/bus" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function", version = "7" }
  }

  mock_resource "aws_lambda_alias" {
    defaults = {
      arn        = "arn:aws:lambda:eu-west-1:123456789012:function:function:live"
      invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/live/invocations"
    }
  }

  mock_resource "aws_apigatewayv2_api" {
    defaults = {
      id            = "a1b2c3d4e5"
      api_endpoint  = "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"
      execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5"
    }
  }

  mock_resource "aws_lambda_event_source_mapping" {
    defaults = { uuid = "00000000-0000-4000-8000-000000000000" }
  }
}

variables {
  package_dir       = "tests/packages"
  stripe_secret_key = "sk_test_canary"
  webhook_secret    = "whsec_canary"
}

run "the_default_scope_is_name_environment_and_hash" {
  command = plan

  assert {
    condition     = output.scope == "orderonce-dev-836569"
    error_message = "scope: got ${output.scope}"
  }

  assert {
    condition     = aws_lambda_function.functions["order"].function_name == "orderonce-dev-order"
    error_message = "function_name: must not contain the hash"
  }
}

run "the_default_scope_differs_between_accounts" {
  command = plan

  override_data {
    target = data.aws_caller_identity.current
    values = { account_id = "210987654321" }
  }

  assert {
    condition     = output.scope == "orderonce-dev-e3ac8a"
    error_message = "scope: got ${output.scope}, two accounts may share a Stripe account"
  }
}

run "the_default_scope_differs_between_regions" {
  command = plan

  override_data {
    target = data.aws_region.current
    values = { region = "us-east-1" }
  }

  assert {
    condition     = output.scope == "orderonce-dev-eb805c"
    error_message = "scope: got ${output.scope}, two regions may share a Stripe account"
  }
}

run "a_given_scope_is_used_unchanged" {
  command = plan

  variables {
    scope = "orderonce-dev"
  }

  assert {
    condition     = output.scope == "orderonce-dev"
    error_message = "scope: got ${output.scope}"
  }

  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms :
      [for query in alarm.metric_query : [for metric in query.metric :
        metric.dimensions.Scope == "orderonce-dev" if metric.namespace == "orderonce"
      ]]
    ]))
    error_message = "an alarm reads metrics of another scope than the function's"
  }
}

run "every_name_contains_the_environment" {
  command = plan

  variables {
    environment               = "other"
    create_example_subscriber = true
    create_intake             = true
    intake_jwt                = { issuer = "https://issuer.invalid", audience = ["shop"] }
    stock_tracking            = true
    create_receipts           = true
    receipt_from              = "receipts@shop.invalid"
    receipt_configuration_set = "shop-receipts"
  }

  assert {
    condition = alltrue([for name in [
      aws_sqs_queue.orders.name, aws_sqs_queue.dead_letters.name, aws_dynamodb_table.orders.name,
      aws_lambda_function.functions["order"].function_name, aws_iam_role.functions["order"].name,
      aws_secretsmanager_secret.stripe.name, aws_secretsmanager_secret.webhook[0].name,
      aws_apigatewayv2_api.webhook[0].name, aws_lambda_function.functions["webhook"].function_name,
      trimprefix(aws_cloudwatch_log_group.webhook_access[0].name, "/aws/vendedlogs/"),
      trimprefix(aws_cloudwatch_log_group.functions["order"].name, "/aws/lambda/"),
      aws_cloudwatch_dashboard.orders.dashboard_name, aws_cloudwatch_event_bus.orders.name,
      aws_cloudwatch_event_archive.orders.name, aws_sqs_queue.unpublished.name,
      aws_cloudwatch_event_rule.paid[0].name, aws_sqs_queue.paid[0].name, aws_sqs_queue.paid_dead[0].name,
      aws_apigatewayv2_api.orders[0].name, aws_apigatewayv2_authorizer.intake[0].name,
      trimprefix(aws_cloudwatch_log_group.intake_access[0].name, "/aws/vendedlogs/"),
      aws_dynamodb_table.stock[0].name, aws_dynamodb_table.receipts[0].name,
      aws_cloudwatch_event_rule.receipts["orders"].name, aws_cloudwatch_event_rule.receipts["mail"].name,
      aws_sqs_queue.receipts[0].name, aws_sqs_queue.receipts_dead[0].name,
      aws_cloudwatch_metric_alarm.alarms["dead-letters"].alarm_name,
    ] : startswith(name, "orderonce-other")])
    error_message = "a name lacks the environment: two environments in one account would collide"
  }
}
