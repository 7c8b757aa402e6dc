mock_provider "aws" {
  source = "./tests/mocks"
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
