# What variables turn off and change.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "without_variables_no_optional_part_exists" {
  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_iam_role_policy.functions, aws_cloudwatch_log_group.functions,
    ] : keys(resources) == ["order", "publish", "reconcile", "refund", "webhook"]])
    error_message = "functions: a part of an optional function exists, or one of another is missing"
  }

  assert {
    condition = (
      keys(aws_sqs_queue.queues) == ["orders", "refunds"]
      && keys(aws_sqs_queue.dead_letters) == ["orders-dead", "refunds-dead", "unpublished"]
      && keys(aws_sqs_queue_policy.queues) == ["orders", "orders-dead", "refunds", "refunds-dead", "unpublished"]
      && keys(aws_sqs_queue_redrive_allow_policy.dead_letters) == ["orders-dead", "refunds-dead"]
      && keys(aws_lambda_event_source_mapping.queues) == ["orders", "refunds"]
    )
    error_message = "queues: a queue of an optional part exists, or another is missing"
  }

  assert {
    condition = sum([for resources in [
      values(aws_apigatewayv2_route.intake), values(aws_lambda_permission.intake), aws_apigatewayv2_api.orders,
      aws_apigatewayv2_integration.intake, aws_apigatewayv2_authorizer.intake, aws_apigatewayv2_stage.orders,
      aws_cloudwatch_log_group.intake_access, aws_dynamodb_table.stock, aws_dynamodb_table.receipts,
      values(aws_cloudwatch_event_rule.receipts), values(aws_cloudwatch_event_target.receipts),
      aws_cloudwatch_event_rule.paid, aws_cloudwatch_event_target.paid, aws_iam_policy.operator_read,
      aws_iam_policy.operator_repair, values(aws_iam_role_policy.keys),
    ] : length(resources)]) == 0
    error_message = "an optional part must be off by default"
  }

  assert {
    condition = alltrue([for value in [
      output.intake_url, output.intake_caller_policy, output.paid_queue_url, output.operator_read_policy_arn,
      output.operator_repair_policy_arn,
      ] : value == null]) && keys(output.tables) == ["orders"] && keys(output.apis) == ["orderonce-dev-webhook"] && (
      keys(output.secrets) == ["stripe", "webhook"] && !contains(keys(output.log_groups), "intake-access")
      && !can(regex("STOCK_TABLE|RECEIPTS_TABLE", output.operator_environment))
    )
    error_message = "outputs: must be null or absent without the part"
  }

  assert {
    condition = !can(regex("Stock|LoadDeclinedOrders|WriteTraces|STOCK_", jsonencode([
      values(aws_iam_role_policy.functions)[*].policy, values(aws_lambda_function.functions)[*].environment,
    ])))
    error_message = "a policy or environment names what does not exist"
  }
}

# The checksums are those of the zips that the other tests use.
run "zips_can_be_in_a_bucket" {
  command = plan

  variables {
    package_dir = null
    package_s3 = {
      bucket = "releases"
      prefix = "orderonce/v0.1.0/"
      checksums = join("", [for zip in fileset("tests/packages", "*.zip") :
        "${filesha256("tests/packages/${zip}")}  ${zip}\n"
      ])
    }
  }

  assert {
    condition = alltrue([for name, f in aws_lambda_function.functions : (
      f.filename == null && f.s3_bucket == "releases" && f.s3_key == "orderonce/v0.1.0/${name}.zip"
      && f.source_code_hash == filebase64sha256("tests/packages/${name}.zip")
      && endswith(f.description, filesha256("tests/packages/${name}.zip"))
    )])
    error_message = "package_s3: another key or hash than that of the zip"
  }
}

run "settings_can_be_changed" {
  variables {
    package_dir                  = "tests/packages/amd64"
    architecture                 = "x86_64"
    maximum_concurrency          = 5
    reserved_concurrency         = 5
    webhook_memory_size          = 128
    webhook_reserved_concurrency = 3
    webhook_burst_limit          = 20
    webhook_rate_limit           = 10
    reconcile_minutes            = 1
    reconcile_rate               = 100
    processing                   = false
    event_archive_days           = 0
    deletion_protection          = false
  }

  assert {
    condition = jsonencode({ for name, f in aws_lambda_function.functions : name => [
      f.memory_size, f.reserved_concurrent_executions, f.architectures,
      ] }) == jsonencode({ for name, settings in {
      order = [256, 5], publish = [256, null], reconcile = [256, null], refund = [256, null], webhook = [128, 3]
    } : name => concat(settings, [["x86_64"]]) })
    error_message = "memory_size, reserved_concurrency, architecture: must apply to their functions only"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_burst_limit == 20
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_rate_limit == 10
    )
    error_message = "webhook_burst_limit, webhook_rate_limit: ignored"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.schedule_expression == "rate(1 minutes)"
      && aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 60
      && aws_lambda_function.functions["reconcile"].environment[0].variables.STRIPE_RATE == "100"
    )
    error_message = "reconcile_minutes, reconcile_rate: ignored"
  }

  assert {
    condition = (
      !anytrue(values(aws_lambda_event_source_mapping.queues)[*].enabled)
      && !aws_dynamodb_table.orders.deletion_protection_enabled
    )
    error_message = "processing, deletion_protection: ignored by a mapping or the table"
  }

  assert {
    condition     = aws_cloudwatch_event_archive.orders.retention_days == 36500
    error_message = "retention_days: the provider would not send 0, so 90 days would stay"
  }
}

run "pollers_replace_maximum_concurrency_and_tokens_can_need_a_scope_and_claims" {
  command = plan

  variables {
    provisioned_pollers = { minimum = 2, maximum = 5 }
    reconcile_minutes   = 60
    create_intake       = true
    intake_jwt = {
      issuer               = "https://issuer.invalid"
      audience             = ["shop"]
      authorization_scopes = ["orders/put"]
      owner_claim          = "tenant"
      customer_claim       = "payer"
    }
  }

  assert {
    condition = length(aws_lambda_event_source_mapping.queues["orders"].scaling_config) == 0 && [
      for config in aws_lambda_event_source_mapping.queues["orders"].provisioned_poller_config :
      [config.minimum_pollers, config.maximum_pollers]
    ] == [[2, 5]]
    error_message = "provisioned_pollers: ignored, or beside scaling_config, which Lambda rejects"
  }

  assert {
    condition     = aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 300
    error_message = "maximum_event_age_in_seconds: must be at most 300"
  }

  assert {
    condition = (
      aws_lambda_function.functions["intake"].environment[0].variables.OWNER_CLAIM == "tenant"
      && aws_lambda_function.functions["intake"].environment[0].variables.CUSTOMER_CLAIM == "payer"
      && [for route in aws_apigatewayv2_route.intake : one(route.authorization_scopes)]
      == [for n in range(3) : "orders/put"]
    )
    error_message = "intake_jwt: a claim is ignored, or a route requires no scope"
  }
}

run "settings_of_optional_parts_can_be_changed" {
  variables {
    create_intake               = true
    create_receipts             = true
    stock_tracking              = true
    intake_burst_limit          = 20
    intake_rate_limit           = 10
    intake_reserved_concurrency = 10
    intake_jwt                  = { issuer = "https://issuer.invalid/pool", audience = ["shop", "app"] }
    stock_hold_hours            = 2
    receipt_mode                = "at_least_once"
    deletion_protection         = false
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_burst_limit == 20
      && aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_rate_limit == 10
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_burst_limit == 100
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_rate_limit == 50
    )
    error_message = "intake_burst_limit, intake_rate_limit: must apply to this API only"
  }

  assert {
    condition = { for name, function in aws_lambda_function.functions : name => function.reserved_concurrent_executions
      if function.reserved_concurrent_executions != null
    } == { intake = 10 }
    error_message = "intake_reserved_concurrency: must apply to this function only"
  }

  assert {
    condition = (
      aws_lambda_function.functions["reconcile"].environment[0].variables.STOCK_HOLD == "2h"
      && aws_lambda_function.functions["receipt"].environment[0].variables.RECEIPTS == "at_least_once"
      && !anytrue([aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0]][*].deletion_protection_enabled)
    )
    error_message = "stock_hold_hours, receipt_mode, deletion_protection: ignored"
  }

  # A caller with a token needs no policy, and no scope that nobody has asked for.
  assert {
    condition = jsonencode([for route in aws_apigatewayv2_route.intake : [
      route.authorization_type, route.authorizer_id, length(route.authorization_scopes),
    ]]) == jsonencode([for n in range(3) : ["JWT", "authorizer", 0]]) && output.intake_caller_policy == null
    error_message = "routes: each must require a token"
  }

  assert {
    condition = (
      aws_apigatewayv2_authorizer.intake[0].authorizer_type == "JWT"
      && aws_apigatewayv2_authorizer.intake[0].api_id == "orders"
      && aws_apigatewayv2_authorizer.intake[0].identity_sources == toset(["$request.header.Authorization"])
      && aws_apigatewayv2_authorizer.intake[0].jwt_configuration[0].issuer == "https://issuer.invalid/pool"
      && aws_apigatewayv2_authorizer.intake[0].jwt_configuration[0].audience == toset(["app", "shop"])
    )
    error_message = "authorizer: must accept tokens of the issuer, for the audiences"
  }

  assert {
    condition = { for name, value in aws_lambda_function.functions["intake"].environment[0].variables :
      name => value if endswith(name, "_CLAIM")
    } == { OWNER_CLAIM = "client_id" }
    error_message = "OWNER_CLAIM: callers would see the orders of all others, or a person would name prices"
  }
}

run "without_webhooks_and_refunds_all_of_theirs_is_removed" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    create_webhook            = false
    create_refund             = false
    stripe_refund_key_version = 1
    kms_key_arn               = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = sum([for resources in [
      aws_apigatewayv2_api.webhook, aws_apigatewayv2_integration.webhook, aws_apigatewayv2_route.webhook,
      aws_apigatewayv2_stage.webhook, aws_lambda_permission.webhook, aws_cloudwatch_log_group.webhook_access,
      aws_secretsmanager_secret.webhook, aws_secretsmanager_secret_version.webhook,
      aws_secretsmanager_secret.stripe_refund,
    ] : length(resources)]) == 0
    error_message = "create_webhook, create_refund: a resource remains"
  }

  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_cloudwatch_log_group.functions, aws_iam_role_policy.functions, aws_iam_role_policy.keys,
    ] : keys(resources) == ["order", "publish", "reconcile"]])
    error_message = "create_webhook, create_refund: a part of the function remains"
  }

  assert {
    condition = !can(regex("refund", jsonencode([
      keys(aws_sqs_queue.queues), keys(aws_sqs_queue.dead_letters), keys(aws_sqs_queue_policy.queues),
      keys(aws_lambda_event_source_mapping.queues),
      setsubtract(keys(aws_cloudwatch_metric_alarm.alarms), ["refunded-outside"]),
    ])))
    error_message = "create_refund: a part of the function remains"
  }

  assert {
    condition = output.webhook_url == null && output.refund_queue_url == null && !can(regex("webhook|refund", jsonencode([
      keys(output.apis), keys(output.functions), keys(output.log_groups), keys(output.queues), keys(output.secrets),
    ]))) && !strcontains(output.operator_environment, "REFUND")
    error_message = "create_webhook, create_refund: an output remains"
  }
}
