mock_provider "aws" {
  source = "./tests/mocks"
}

# A distinct ARN, so that a policy that names the wrong secret fails.
override_resource {
  target = aws_secretsmanager_secret.webhook
  values = {
    id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhook-AbCdEf"
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhook-AbCdEf"
  }
}

variables {
  webhook_secret_version = 3
}

run "the_api_has_one_route" {
  assert {
    condition     = aws_apigatewayv2_api.webhook[0].protocol_type == "HTTP"
    error_message = "protocol_type: must be HTTP, a REST API sends another payload"
  }

  assert {
    condition = (
      aws_apigatewayv2_route.webhook[0].route_key == "POST /stripe/webhook"
      && aws_apigatewayv2_route.webhook[0].target
      == "integrations/${aws_apigatewayv2_integration.webhook[0].id}"
    )
    error_message = "route: must send POST /stripe/webhook to the integration"
  }

  assert {
    condition = alltrue([for part in [
      aws_apigatewayv2_integration.webhook[0], aws_apigatewayv2_route.webhook[0],
      aws_apigatewayv2_stage.webhook[0],
    ] : part.api_id == aws_apigatewayv2_api.webhook[0].id])
    error_message = "api_id: a part belongs to another API"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].name == "$default" && aws_apigatewayv2_stage.webhook[0].auto_deploy
    )
    error_message = "stage: must be $default, deployed automatically, or the URL does not work"
  }

  assert {
    condition = output.webhook_url == (
      "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/stripe/webhook"
    )
    error_message = "webhook_url: got ${coalesce(output.webhook_url, "null")}"
  }
}

run "the_api_invokes_the_alias_with_payload_format_2" {
  assert {
    condition = (
      aws_apigatewayv2_integration.webhook[0].integration_uri == aws_lambda_alias.live["webhook"].invoke_arn
      && aws_apigatewayv2_integration.webhook[0].integration_type == "AWS_PROXY"
      && aws_apigatewayv2_integration.webhook[0].integration_method == "POST"
    )
    error_message = "integration: must invoke the alias live"
  }

  assert {
    condition     = aws_apigatewayv2_integration.webhook[0].payload_format_version == "2.0"
    error_message = "payload_format_version: the function reads 2.0 only"
  }
}

run "only_the_route_may_invoke_the_function" {
  assert {
    condition = (
      aws_lambda_permission.webhook[0].source_arn
      == "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5/$default/POST/stripe/webhook"
    )
    error_message = "source_arn: got ${aws_lambda_permission.webhook[0].source_arn}"
  }

  assert {
    condition = (
      aws_lambda_permission.webhook[0].principal == "apigateway.amazonaws.com"
      && aws_lambda_permission.webhook[0].action == "lambda:InvokeFunction"
      && aws_lambda_permission.webhook[0].function_name == "orderonce-dev-webhook"
      && aws_lambda_permission.webhook[0].qualifier == "live"
    )
    error_message = "permission: must allow API Gateway to invoke the alias, and nothing else"
  }
}

run "requests_are_throttled" {
  command = plan

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_burst_limit == 100
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_rate_limit == 50
    )
    error_message = "throttling: must be 100 at once and 50 per second by default"
  }
}

run "throttling_can_be_changed" {
  command = plan

  variables {
    webhook_burst_limit = 20
    webhook_rate_limit  = 10
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_burst_limit == 20
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_rate_limit == 10
    )
    error_message = "webhook_burst_limit, webhook_rate_limit: ignored"
  }
}

run "access_logs_have_no_body_header_or_query_string" {
  assert {
    condition = sort(values(
      jsondecode(aws_apigatewayv2_stage.webhook[0].access_log_settings[0].format)
      )) == sort([
      "$context.requestId", "$context.requestTime", "$context.identity.sourceIp", "$context.routeKey",
      "$context.status", "$context.responseLatency", "$context.integrationStatus",
      "$context.integrationLatency", "$context.integrationErrorMessage",
    ])
    error_message = "access logs: another field may contain customer data or a signature"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].access_log_settings[0].destination_arn
      == "arn:aws:logs:eu-west-1:123456789012:log-group:webhook-access"
    )
    error_message = "access logs: must go to their own group"
  }

  assert {
    condition = (
      aws_cloudwatch_log_group.webhook_access[0].name == "/aws/vendedlogs/orderonce-dev-webhook-access"
      && aws_cloudwatch_log_group.webhook_access[0].retention_in_days == 90
      && aws_cloudwatch_log_group.functions["webhook"].retention_in_days == 90
    )
    error_message = "log groups: must expire"
  }
}

run "the_function_answers_before_the_api_gives_up" {
  command = plan

  assert {
    condition     = aws_lambda_function.functions["webhook"].timeout == 15
    error_message = "timeout: must be 15 s, half of what an HTTP API waits"
  }

  # A thin event reads Stripe twice.
  assert {
    condition = 2 * tonumber(trimsuffix(
      aws_lambda_function.functions["webhook"].environment[0].variables.STRIPE_TIMEOUT, "s",
    )) <= aws_lambda_function.functions["webhook"].timeout - 5
    error_message = "STRIPE_TIMEOUT: two calls must leave 5 s to the table"
  }

  assert {
    condition = (
      aws_lambda_function.functions["webhook"].memory_size == 256
      && aws_lambda_function.functions["webhook"].reserved_concurrent_executions == null
    )
    error_message = "defaults: must be 256 MB and no reserved concurrency"
  }
}

run "memory_and_reserved_concurrency_can_be_changed" {
  command = plan

  variables {
    webhook_memory_size          = 128
    webhook_reserved_concurrency = 5
  }

  assert {
    condition = (
      aws_lambda_function.functions["webhook"].memory_size == 128
      && aws_lambda_function.functions["webhook"].reserved_concurrent_executions == 5
      && aws_lambda_function.functions["order"].memory_size == 256
    )
    error_message = "webhook_memory_size, webhook_reserved_concurrency: must apply to this function only"
  }
}

run "the_function_runs_the_built_zip" {
  command = plan

  assert {
    condition = (
      aws_lambda_function.functions["webhook"].source_code_hash
      == filebase64sha256("tests/packages/webhook.zip")
    )
    error_message = "source_code_hash: must be the hash of webhook.zip"
  }
}

# Both secrets are read at a cold start, so a rotation must publish a new version. The
# order function does not read the webhook secret.
run "a_rotation_publishes_the_functions_that_read_the_secret" {
  assert {
    condition = strcontains(
      aws_lambda_function.functions["webhook"].description, "Key 1. Webhook secret 3. Zip ",
    )
    error_message = "description: must contain the versions of both secrets"
  }

  assert {
    condition     = !strcontains(aws_lambda_function.functions["order"].description, "Webhook")
    error_message = "description: a new webhook secret must not publish the order function"
  }

  assert {
    condition = (
      aws_lambda_alias.live["webhook"].function_version == aws_lambda_function.functions["webhook"].version
    )
    error_message = "function_version: the alias must point to the published version"
  }
}

run "without_a_stored_secret_the_description_says_0" {
  command = plan

  variables {
    webhook_secret_version = 0
  }

  assert {
    condition     = strcontains(aws_lambda_function.functions["webhook"].description, "Webhook secret 0.")
    error_message = "description: storing the first secret must publish a new version"
  }
}

run "the_environment_is_complete" {
  assert {
    condition = aws_lambda_function.functions["webhook"].environment[0].variables == tomap({
      ORDERS_TABLE       = "orderonce-dev-orders"
      SCOPE              = "orderonce-dev-836569"
      STRIPE_SECRET_ARN  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      STRIPE_TIMEOUT     = "5s"
      WEBHOOK_SECRET_ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhook-AbCdEf"
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }
}

run "the_role_allows_exact_actions_on_exact_arns" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_role_policy.webhook[0].policy).Statement :
      s.Sid => [s.Effect, sort(flatten([s.Action])), sort(flatten([s.Resource]))]
      }) == jsonencode({
      LoadOrders = [
        "Allow", ["dynamodb:GetItem", "dynamodb:Query"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      SettleOrders = [
        "Allow", ["dynamodb:PutItem", "dynamodb:UpdateItem"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      ReadKeyAndWebhookSecret = [
        "Allow", ["secretsmanager:GetSecretValue"],
        [
          "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf",
          "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhook-AbCdEf",
        ],
      ]
      WriteWebhookLogs = [
        "Allow", ["logs:CreateLogStream", "logs:PutLogEvents"],
        ["${aws_cloudwatch_log_group.functions["webhook"].arn}:log-stream:*"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_role_policy.webhook[0].policy}"
  }

  assert {
    condition     = aws_iam_role_policy.webhook[0].role == aws_iam_role.functions["webhook"].id
    error_message = "policy: belongs to another role"
  }

  assert {
    condition     = aws_iam_role.functions["webhook"].name == "orderonce-dev-webhook"
    error_message = "role: the function must have its own"
  }
}

run "outputs_name_the_function_and_its_logs" {
  assert {
    condition = (output.webhook_function_name == "orderonce-dev-webhook"
      && output.webhook_log_group == "/aws/lambda/orderonce-dev-webhook"
      && output.webhook_access_log_group == "/aws/vendedlogs/orderonce-dev-webhook-access"
      && output.webhook_secret_arn == "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhook-AbCdEf"
    && output.function_aliases["webhook"] == aws_lambda_alias.live["webhook"].arn)
    error_message = "outputs: one is missing or wrong"
  }
}

run "create_webhook_false_removes_all_of_it" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    create_webhook = false
    kms_key_arn    = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = alltrue([for resources in [
      aws_apigatewayv2_api.webhook, aws_apigatewayv2_integration.webhook, aws_apigatewayv2_route.webhook,
      aws_apigatewayv2_stage.webhook, aws_lambda_permission.webhook, aws_cloudwatch_log_group.webhook_access,
      aws_secretsmanager_secret.webhook, aws_secretsmanager_secret_version.webhook,
      aws_iam_role_policy.webhook,
    ] : length(resources) == 0])
    error_message = "create_webhook: a resource remains"
  }

  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_cloudwatch_log_group.functions, aws_iam_role_policy.keys,
    ] : keys(resources) == ["order", "publish", "reconcile"]])
    error_message = "create_webhook: a part of the function remains"
  }

  assert {
    condition = length([for name in keys(aws_cloudwatch_metric_alarm.alarms) :
      name if startswith(name, "webhook-")
    ]) == 0
    error_message = "create_webhook: an alarm remains"
  }

  assert {
    condition = alltrue([for value in [
      output.webhook_url, output.webhook_function_name, output.webhook_log_group,
      output.webhook_access_log_group, output.webhook_secret_arn,
    ] : value == null])
    error_message = "create_webhook: an output remains"
  }
}
